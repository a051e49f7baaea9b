"""What is public: every name is imported as itself from its home."""

from joulemap.answer.analyze.answer import (
    AnalyzeAnswer as AnalyzeAnswer,
)
from joulemap.answer.analyze.row import (
    ActionShare as ActionShare,
)
from joulemap.answer.analyze.row import (
    BottleneckShare as BottleneckShare,
)
from joulemap.answer.analyze.row import (
    CategoryShare as CategoryShare,
)
from joulemap.answer.analyze.row import (
    OperatorShare as OperatorShare,
)
from joulemap.answer.analyze.row import (
    RunTotal as RunTotal,
)
from joulemap.answer.analyze.row import (
    SubgraphShare as SubgraphShare,
)
from joulemap.answer.answer import (
    Answer as Answer,
)
from joulemap.answer.answer import (
    RunAnswer as RunAnswer,
)
from joulemap.answer.calibrate import (
    CalibrateAnswer as CalibrateAnswer,
)
from joulemap.answer.calibrate import (
    CalibrationErrorRow as CalibrationErrorRow,
)
from joulemap.answer.calibrate import (
    FittedNumber as FittedNumber,
)
from joulemap.answer.candidate import (
    AssumedNumber as AssumedNumber,
)
from joulemap.answer.candidate import (
    Candidate as Candidate,
)
from joulemap.answer.compare.breakdown import (
    BreakdownAnswer as BreakdownAnswer,
)
from joulemap.answer.compare.breakdown import (
    EnergyBranch as EnergyBranch,
)
from joulemap.answer.compare.breakdown import (
    RunFigure as RunFigure,
)
from joulemap.answer.compare.contest import (
    Contender as Contender,
)
from joulemap.answer.compare.contest import (
    ContestAnswer as ContestAnswer,
)
from joulemap.answer.compare.contest import (
    Victory as Victory,
)
from joulemap.answer.compare.model import (
    ModelFigure as ModelFigure,
)
from joulemap.answer.compare.model import (
    ModelsAnswer as ModelsAnswer,
)
from joulemap.answer.compare.ranking import (
    HardwareNumber as HardwareNumber,
)
from joulemap.answer.compare.ranking import (
    RankedHardware as RankedHardware,
)
from joulemap.answer.compare.ranking import (
    RankingAnswer as RankingAnswer,
)
from joulemap.answer.compare.ranking import (
    UtilizationSpread as UtilizationSpread,
)
from joulemap.answer.compare.summary import (
    CompareAnswer as CompareAnswer,
)
from joulemap.answer.compare.summary import (
    Comparison as Comparison,
)
from joulemap.answer.compare.summary import (
    Insight as Insight,
)
from joulemap.answer.compare.summary import (
    Recommendation as Recommendation,
)
from joulemap.answer.cost import (
    BreakEven as BreakEven,
)
from joulemap.answer.cost import (
    CostAnswer as CostAnswer,
)
from joulemap.answer.cost import (
    CostOption as CostOption,
)
from joulemap.answer.cost import (
    GridFootprint as GridFootprint,
)
from joulemap.answer.database import (
    AuditAnswer as AuditAnswer,
)
from joulemap.answer.database import (
    DatabaseAnswer as DatabaseAnswer,
)
from joulemap.answer.database import (
    Finding as Finding,
)
from joulemap.answer.database import (
    StoredTable as StoredTable,
)
from joulemap.answer.difference import (
    Constant as Constant,
)
from joulemap.answer.difference import (
    DifferenceAnswer as DifferenceAnswer,
)
from joulemap.answer.difference import (
    Setting as Setting,
)
from joulemap.answer.edp.answer import (
    EdpAnswer as EdpAnswer,
)
from joulemap.answer.edp.row import (
    EdpBound as EdpBound,
)
from joulemap.answer.edp.row import (
    EdpComparison as EdpComparison,
)
from joulemap.answer.edp.row import (
    EdpCut as EdpCut,
)
from joulemap.answer.edp.row import (
    EdpOperatorShare as EdpOperatorShare,
)
from joulemap.answer.edp.row import (
    EdpPattern as EdpPattern,
)
from joulemap.answer.edp.row import (
    EdpShare as EdpShare,
)
from joulemap.answer.edp.row import (
    EdpTotal as EdpTotal,
)
from joulemap.answer.explain.answer import (
    ExplainAnswer as ExplainAnswer,
)
from joulemap.answer.explain.pair import (
    PairAnswer as PairAnswer,
)
from joulemap.answer.explain.row import (
    CategoryDifference as CategoryDifference,
)
from joulemap.answer.explain.row import (
    EdpTerm as EdpTerm,
)
from joulemap.answer.explain.row import (
    Effect as Effect,
)
from joulemap.answer.explain.row import (
    EnergyTerm as EnergyTerm,
)
from joulemap.answer.explain.row import (
    LatencyTerm as LatencyTerm,
)
from joulemap.answer.explain.row import (
    MemoryTerm as MemoryTerm,
)
from joulemap.answer.explain.row import (
    MetricTerm as MetricTerm,
)
from joulemap.answer.explain.row import (
    RunPair as RunPair,
)
from joulemap.answer.explain.row import (
    SubgraphDifference as SubgraphDifference,
)
from joulemap.answer.explain.row import (
    Traffic as Traffic,
)
from joulemap.answer.hardware import (
    ActionPrice as ActionPrice,
)
from joulemap.answer.hardware import (
    HardwareAnswer as HardwareAnswer,
)
from joulemap.answer.hardware import (
    HardwareFact as HardwareFact,
)
from joulemap.answer.hardware import (
    HardwareSummary as HardwareSummary,
)
from joulemap.answer.hardware import (
    RidgePoint as RidgePoint,
)
from joulemap.answer.hardware import (
    StoredCalibration as StoredCalibration,
)
from joulemap.answer.hardware_file import (
    Default as Default,
)
from joulemap.answer.hardware_file import (
    FileCheck as FileCheck,
)
from joulemap.answer.hardware_file import (
    FileChecks as FileChecks,
)
from joulemap.answer.hardware_file import (
    Trial as Trial,
)
from joulemap.answer.measure import (
    MeasureAnswer as MeasureAnswer,
)
from joulemap.answer.measure import (
    Score as Score,
)
from joulemap.answer.model import (
    ModelProfile as ModelProfile,
)
from joulemap.answer.model import (
    OperationShare as OperationShare,
)
from joulemap.answer.model import (
    PatternShare as PatternShare,
)
from joulemap.answer.model import (
    ProfileAnswer as ProfileAnswer,
)
from joulemap.answer.pareto import (
    ParetoAnswer as ParetoAnswer,
)
from joulemap.answer.pareto import (
    ParetoPoint as ParetoPoint,
)
from joulemap.answer.recommend import (
    RankedConfiguration as RankedConfiguration,
)
from joulemap.answer.recommend import (
    RecommendAnswer as RecommendAnswer,
)
from joulemap.answer.recommend import (
    Violation as Violation,
)
from joulemap.answer.sanity import (
    Probe as Probe,
)
from joulemap.answer.sanity import (
    SanityAnswer as SanityAnswer,
)
from joulemap.answer.scope import (
    Caveat as Caveat,
)
from joulemap.answer.scope import (
    RunCalibration as RunCalibration,
)
from joulemap.answer.scope import (
    Scope as Scope,
)
from joulemap.answer.sweep import (
    SweepAnswer as SweepAnswer,
)
from joulemap.answer.sweep import (
    SweepCrossing as SweepCrossing,
)
from joulemap.answer.sweep import (
    SweepPoint as SweepPoint,
)
from joulemap.answer.sweep import (
    SweepSeries as SweepSeries,
)
from joulemap.answer.sweep import (
    SweepWinner as SweepWinner,
)
from joulemap.answer.utilization import (
    Pairing as Pairing,
)
from joulemap.answer.utilization import (
    Utilization as Utilization,
)
from joulemap.answer.utilization import (
    UtilizationAnswer as UtilizationAnswer,
)
from joulemap.answer.utilization import (
    UtilizationFlag as UtilizationFlag,
)
from joulemap.catalog.load import (
    load_catalogue as load_catalogue,
)
from joulemap.domain.calibration import (
    Calibration as Calibration,
)
from joulemap.domain.calibration import (
    CalibrationError as CalibrationError,
)
from joulemap.domain.configuration import (
    Configuration as Configuration,
)
from joulemap.domain.configuration import (
    Runtime as Runtime,
)
from joulemap.domain.hardware import (
    Hardware as Hardware,
)
from joulemap.domain.hardware import (
    MemoryLevel as MemoryLevel,
)
from joulemap.domain.hardware import (
    Peak as Peak,
)
from joulemap.domain.hardware import (
    PowerMode as PowerMode,
)
from joulemap.domain.measurement import (
    Measurement as Measurement,
)
from joulemap.domain.metric import (
    METRICS as METRICS,
)
from joulemap.domain.metric import (
    Metric as Metric,
)
from joulemap.domain.metric import (
    MetricName as MetricName,
)
from joulemap.domain.metric import (
    PartMetricName as PartMetricName,
)
from joulemap.domain.precision import (
    Precision as Precision,
)
from joulemap.domain.quantity import (
    Quantity as Quantity,
)
from joulemap.domain.reference import (
    EnergyAction as EnergyAction,
)
from joulemap.domain.reference import (
    EnergyReference as EnergyReference,
)
from joulemap.domain.settings import (
    Deployment as Deployment,
)
from joulemap.domain.settings import (
    Limits as Limits,
)
from joulemap.domain.settings import (
    Settings as Settings,
)
from joulemap.domain.settings import (
    Usage as Usage,
)
from joulemap.domain.table import (
    Column as Column,
)
from joulemap.domain.table import (
    Table as Table,
)
from joulemap.domain.timing import (
    Timing as Timing,
)
from joulemap.domain.workload import (
    Access as Access,
)
from joulemap.domain.workload import (
    Buffer as Buffer,
)
from joulemap.domain.workload import (
    Edge as Edge,
)
from joulemap.domain.workload import (
    Operator as Operator,
)
from joulemap.domain.workload import (
    Subgraph as Subgraph,
)
from joulemap.domain.workload import (
    Tensor as Tensor,
)
from joulemap.domain.workload import (
    Workload as Workload,
)
from joulemap.errors import (
    ExitCode as ExitCode,
)
from joulemap.errors import (
    JoulemapError as JoulemapError,
)
from joulemap.plan.run import (
    RunTally as RunTally,
)
from joulemap.present.document import (
    Document as Document,
)
from joulemap.present.document import (
    Grid as Grid,
)
from joulemap.present.document import (
    Lines as Lines,
)
from joulemap.present.document import (
    Section as Section,
)
from joulemap.present.document import (
    Steps as Steps,
)
from joulemap.present.document import (
    Text as Text,
)
from joulemap.workspace import (
    Workspace as Workspace,
)

__all__: list[str]
