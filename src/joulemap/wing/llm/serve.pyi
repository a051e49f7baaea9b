"""Names that other wings use; see `serve.py`."""

from joulemap.wing.llm.ask.llm import list_rows as list_rows
from joulemap.wing.llm.ask.served import (
    OTHER_INTERVALS as OTHER_INTERVALS,
    ServedRun as ServedRun,
    check_served as check_served,
)
from joulemap.wing.llm.capacity.case import OK as OK, Case as Case, refuse as refuse
from joulemap.wing.llm.capacity.load import run_pools as run_pools
from joulemap.wing.llm.capacity.model import ServedModel as ServedModel
from joulemap.wing.llm.capacity.offload import divide_between as divide_between
from joulemap.wing.llm.capacity.question import Question as Question, find_served as find_served
from joulemap.wing.llm.capacity.row import opening_passes as opening_passes, serve as serve
from joulemap.wing.llm.capacity.search import (
    Server as Server,
    Targets as Targets,
    keep_better as keep_better,
    size_pools as size_pools,
)
from joulemap.wing.llm.error_scale import load_served_doubt as load_served_doubt
from joulemap.wing.llm.generated.row import ServedRow as ServedRow
from joulemap.wing.llm.prediction import ServingPrediction as ServingPrediction, predict_served as predict_served
from joulemap.wing.llm.row import (
    LOCALSCORE as LOCALSCORE,
    ServingRow as ServingRow,
    check_measured as check_measured,
    read_serving_rows as read_serving_rows,
)
from joulemap.wing.llm.serving.load import Served as Served, Window as Window
from joulemap.wing.llm.serving.memory import Room as Room, find_memory_share as find_memory_share
from joulemap.wing.llm.serving.offload import Way as Way
from joulemap.wing.llm.serving.predict import find_deployment as find_deployment
from joulemap.wing.llm.serving.serve import Throughput as Throughput
from joulemap.wing.llm.serving.surface import Passes as Passes
from joulemap.wing.llm.setting import READING_RATE as READING_RATE, SERVING as SERVING, Serving as Serving
from joulemap.wing.llm.show.serving import describe_served as describe_served
from joulemap.wing.llm.step import (
    StepPredictor as StepPredictor,
    evaluate_steps as evaluate_steps,
    predict_step as predict_step,
)
