"""What is public, made by `make rows`: every name is imported as itself from its home."""

from joulemap.answer.analyze.answer import AnalyzeAnswer as AnalyzeAnswer
from joulemap.answer.answer import Answer as Answer, Drawings as Drawings, Figures as Figures, RunAnswer as RunAnswer
from joulemap.answer.architecture.answer import ArchitecturesAnswer as ArchitecturesAnswer
from joulemap.answer.architecture.contrast import PhasesAnswer as PhasesAnswer
from joulemap.answer.calibrate import CalibrateAnswer as CalibrateAnswer
from joulemap.answer.candidate import CandidateAnswer as CandidateAnswer
from joulemap.answer.compare.breakdown import BreakdownAnswer as BreakdownAnswer
from joulemap.answer.compare.contest import ContestAnswer as ContestAnswer
from joulemap.answer.compare.model import ModelsAnswer as ModelsAnswer
from joulemap.answer.compare.ranking import RankingAnswer as RankingAnswer
from joulemap.answer.compare.sentence import ComparedAnswer as ComparedAnswer
from joulemap.answer.compare.summary import CompareAnswer as CompareAnswer
from joulemap.answer.cost import CostAnswer as CostAnswer
from joulemap.answer.database import AuditAnswer as AuditAnswer, DatabaseAnswer as DatabaseAnswer
from joulemap.answer.diff import DiffAnswer as DiffAnswer
from joulemap.answer.difference import DifferenceAnswer as DifferenceAnswer
from joulemap.answer.edp.answer import EdpAnswer as EdpAnswer
from joulemap.answer.explain.answer import ExplainAnswer as ExplainAnswer
from joulemap.answer.explain.pair import MetricTerm as MetricTerm, PairAnswer as PairAnswer
from joulemap.answer.explain.table import DividedAnswer as DividedAnswer
from joulemap.answer.explore.answer import ExploreAnswer as ExploreAnswer
from joulemap.answer.explore.regret import (
    ChipRegret as ChipRegret,
    ModelWinner as ModelWinner,
    RegretAnswer as RegretAnswer,
)
from joulemap.answer.explore.tell import (
    BestDesign as BestDesign,
    Margin as Margin,
    RefusedDesigns as RefusedDesigns,
    RuleRow as RuleRow,
)
from joulemap.answer.fleet.document import FleetAnswer as FleetAnswer
from joulemap.answer.fleet.mixture import MixedRow as MixedRow
from joulemap.answer.fleet.pair import PairRow as PairRow
from joulemap.answer.fleet.row import (
    FleetRow as FleetRow,
    FleetWinner as FleetWinner,
    LevelRow as LevelRow,
    QueueRow as QueueRow,
)
from joulemap.answer.flip.answer import BatchWinner as BatchWinner, FlipAnswer as FlipAnswer
from joulemap.answer.flip.pair import Flip as Flip, Varied as Varied
from joulemap.answer.fusion.answer import FusionAnswer as FusionAnswer
from joulemap.answer.hardware import HardwareAnswer as HardwareAnswer
from joulemap.answer.hardware_file import (
    Default as Default,
    FileCheck as FileCheck,
    FileChecks as FileChecks,
    Trial as Trial,
)
from joulemap.answer.lake import LakeAnswer as LakeAnswer, ListedShard as ListedShard
from joulemap.answer.launch import HostAnswer as HostAnswer, HostPace as HostPace
from joulemap.answer.listing import (
    BoxAnswer as BoxAnswer,
    BoxJoin as BoxJoin,
    BoxPart as BoxPart,
    ListedBox as ListedBox,
)
from joulemap.answer.llm.document import LlmAnswer as LlmAnswer
from joulemap.answer.llm.load import LoadRow as LoadRow
from joulemap.answer.llm.offload import OffloadAnswer as OffloadAnswer, OffloadRow as OffloadRow
from joulemap.answer.llm.pool import PoolRow as PoolRow
from joulemap.answer.llm.row import ServedRow as ServedRow
from joulemap.answer.llm.sentence import ServedAnswer as ServedAnswer
from joulemap.answer.measure import MeasureAnswer as MeasureAnswer
from joulemap.answer.model import ModulesAnswer as ModulesAnswer, ProfileAnswer as ProfileAnswer
from joulemap.answer.pareto import ParetoAnswer as ParetoAnswer
from joulemap.answer.part import PartAnswer as PartAnswer
from joulemap.answer.place.answer import PlaceAnswer as PlaceAnswer
from joulemap.answer.place.row import (
    DeviceRow as DeviceRow,
    EventRow as EventRow,
    PlacementRow as PlacementRow,
    SubgraphRow as SubgraphRow,
)
from joulemap.answer.recommend import RecommendAnswer as RecommendAnswer
from joulemap.answer.record import (
    EnergyBreakdown as EnergyBreakdown,
    Run as Run,
    RunOperator as RunOperator,
    RunSubgraph as RunSubgraph,
)
from joulemap.answer.report.answer import ReportAnswer as ReportAnswer
from joulemap.answer.report.finding import ModelFinding as ModelFinding
from joulemap.answer.sanity import SanityAnswer as SanityAnswer
from joulemap.answer.scope import Scope as Scope
from joulemap.answer.sensitivity import Sensitivity as Sensitivity, SensitivityAnswer as SensitivityAnswer
from joulemap.answer.sweep.answer import SweepAnswer as SweepAnswer
from joulemap.answer.train.answer import TrainAnswer as TrainAnswer
from joulemap.answer.train.row import TrainingRow as TrainingRow
from joulemap.answer.utilization.answer import UtilizationAnswer as UtilizationAnswer
from joulemap.answer.verify.answer import VerifiedRow as VerifiedRow, VerifyAnswer as VerifyAnswer
from joulemap.answer.verify.cause import CauseRow as CauseRow
from joulemap.answer.watch import Watch as Watch, WatchAnswer as WatchAnswer
from joulemap.answer.watched import WatchedModule as WatchedModule
from joulemap.catalog.load import load_catalogue as load_catalogue
from joulemap.design.area import Area as Area
from joulemap.design.group import Group as Group
from joulemap.design.limit import Bound as Bound
from joulemap.design.outcome import Outcomes as Outcomes
from joulemap.design.rule import Law as Law, Rule as Rule
from joulemap.design.space import Parameter as Parameter, Space as Space
from joulemap.design.survey import Survey as Survey
from joulemap.domain.box import Goal as Goal
from joulemap.domain.calibration import (
    Calibration as Calibration,
    CalibrationEntry as CalibrationEntry,
    CalibrationError as CalibrationError,
    EnergyScale as EnergyScale,
    FittedValue as FittedValue,
)
from joulemap.domain.catalogue import ArchitectureNote as ArchitectureNote
from joulemap.domain.change import Change as Change
from joulemap.domain.compiler import Compiler as Compiler
from joulemap.domain.configuration import (
    Boundary as Boundary,
    Configuration as Configuration,
    Precision as Precision,
    Runtime as Runtime,
    Tf32 as Tf32,
)
from joulemap.domain.doubt import Standing as Standing
from joulemap.domain.fleet import Demand as Demand, Level as Level, Objective as Objective
from joulemap.domain.hardware import (
    Hardware as Hardware,
    Link as Link,
    Load as Load,
    MemoryLevel as MemoryLevel,
    Peak as Peak,
    PowerMode as PowerMode,
)
from joulemap.domain.key import WorkloadKey as WorkloadKey
from joulemap.domain.measurement import Measurement as Measurement, Timing as Timing
from joulemap.domain.metric import (
    METRICS as METRICS,
    Metric as Metric,
    MetricName as MetricName,
    PartMetricName as PartMetricName,
    RankMetricName as RankMetricName,
    VariedMetricName as VariedMetricName,
)
from joulemap.domain.offer import Seller as Seller
from joulemap.domain.quantity import Quantity as Quantity
from joulemap.domain.reference import (
    ActionKey as ActionKey,
    EnergyAction as EnergyAction,
    EnergyReference as EnergyReference,
)
from joulemap.domain.settings import (
    ArchiveFormat as ArchiveFormat,
    Bounds as Bounds,
    Deployment as Deployment,
    Device as Device,
    EnergyDivision as EnergyDivision,
    ExportFormat as ExportFormat,
    Limits as Limits,
    ModelDivision as ModelDivision,
    ModelKeywords as ModelKeywords,
    Pay as Pay,
    Price as Price,
    RunKeywords as RunKeywords,
    ScoreDivision as ScoreDivision,
    Serving as Serving,
    Settings as Settings,
    SettingsKeywords as SettingsKeywords,
    Training as Training,
    Usage as Usage,
)
from joulemap.domain.table import Column as Column, Table as Table
from joulemap.domain.workload import (
    Access as Access,
    Buffer as Buffer,
    Edge as Edge,
    Operator as Operator,
    Subgraph as Subgraph,
    Tensor as Tensor,
    Work as Work,
    Workload as Workload,
)
from joulemap.figure.figure import Drawing as Drawing, Figure as Figure
from joulemap.figure.spec import AnswerFigureName as AnswerFigureName, FigureName as FigureName, ShownName as ShownName
from joulemap.model.workload import Booleans as Booleans, Floats as Floats, Integers as Integers, Texts as Texts
from joulemap.plan.budget import Budget as Budget
from joulemap.plan.run import RunTally as RunTally
from joulemap.present.document import (
    Block as Block,
    Document as Document,
    Grid as Grid,
    Lines as Lines,
    Section as Section,
    Steps as Steps,
    Text as Text,
)
from joulemap.present.sketch import (
    Axis as Axis,
    Bar as Bar,
    Bars as Bars,
    Chart as Chart,
    Curve as Curve,
    Heat as Heat,
    HeatRow as HeatRow,
    Point as Point,
    Sketch as Sketch,
)
from joulemap.row import Row as Row
from joulemap.row.analyze import (
    ActionShare as ActionShare,
    BottleneckShare as BottleneckShare,
    CategoryShare as CategoryShare,
    EventCount as EventCount,
    OperatorShare as OperatorShare,
    RunTotal as RunTotal,
    SubgraphRoof as SubgraphRoof,
    SubgraphShare as SubgraphShare,
)
from joulemap.row.architectures import (
    ArchitectureAction as ArchitectureAction,
    ArchitectureCategory as ArchitectureCategory,
    ArchitectureSummary as ArchitectureSummary,
)
from joulemap.row.audit import Finding as Finding
from joulemap.row.breakdown import PartAction as PartAction, PartCategory as PartCategory
from joulemap.row.calibration import (
    CalibrationErrorRow as CalibrationErrorRow,
    FittedNumber as FittedNumber,
    StoredCalibration as StoredCalibration,
)
from joulemap.row.compare import (
    Comparison as Comparison,
    Contender as Contender,
    EnergyBranch as EnergyBranch,
    HardwareNumber as HardwareNumber,
    Insight as Insight,
    ModelFigure as ModelFigure,
    ModelMix as ModelMix,
    Placement as Placement,
    RankedHardware as RankedHardware,
    Recommendation as Recommendation,
    RunFigure as RunFigure,
    Strength as Strength,
    UtilizationSpread as UtilizationSpread,
    Victory as Victory,
)
from joulemap.row.cost import (
    AssumedNumber as AssumedNumber,
    BreakEven as BreakEven,
    CostOption as CostOption,
    GridFootprint as GridFootprint,
)
from joulemap.row.database import StoredTable as StoredTable, StoredView as StoredView
from joulemap.row.diff import VersionFigure as VersionFigure
from joulemap.row.edp import (
    EdpBound as EdpBound,
    EdpComparison as EdpComparison,
    EdpCut as EdpCut,
    EdpOperatorShare as EdpOperatorShare,
    EdpPattern as EdpPattern,
    EdpShare as EdpShare,
    EdpTotal as EdpTotal,
)
from joulemap.row.explain import (
    CategoryDifference as CategoryDifference,
    EdpTerm as EdpTerm,
    Effect as Effect,
    EnergyTerm as EnergyTerm,
    LatencyTerm as LatencyTerm,
    MemoryTerm as MemoryTerm,
    PurposeDifference as PurposeDifference,
    RoleDifference as RoleDifference,
    RunPair as RunPair,
    SubgraphDifference as SubgraphDifference,
    Traffic as Traffic,
)
from joulemap.row.fusion import (
    FusionOperator as FusionOperator,
    FusionPattern as FusionPattern,
    FusionSubgraph as FusionSubgraph,
    FusionTotal as FusionTotal,
)
from joulemap.row.hardware import (
    ActionPrice as ActionPrice,
    HardwareCompiler as HardwareCompiler,
    HardwareFact as HardwareFact,
    HardwareLink as HardwareLink,
    HardwareSummary as HardwareSummary,
    ListedHardware as ListedHardware,
    Probe as Probe,
    RidgePoint as RidgePoint,
)
from joulemap.row.llm import ServedPhase as ServedPhase, ServedWinner as ServedWinner
from joulemap.row.measure import Score as Score
from joulemap.row.measurement import ListedMeasurement as ListedMeasurement, ServedMeasurement as ServedMeasurement
from joulemap.row.model import (
    Caveat as Caveat,
    ListedOperator as ListedOperator,
    ModelCaveat as ModelCaveat,
    ModelProfile as ModelProfile,
    ModulePart as ModulePart,
    OperationShare as OperationShare,
    PatternShare as PatternShare,
)
from joulemap.row.pareto import ParetoPoint as ParetoPoint
from joulemap.row.place import PlacedLine as PlacedLine, PlacementDifference as PlacementDifference
from joulemap.row.recommend import RankedConfiguration as RankedConfiguration, Violation as Violation
from joulemap.row.report import (
    EnergyLeaf as EnergyLeaf,
    NumberSource as NumberSource,
    PredictionStanding as PredictionStanding,
)
from joulemap.row.run import (
    Allocation as Allocation,
    Constant as Constant,
    Fallback as Fallback,
    LedgerLine as LedgerLine,
    Setting as Setting,
)
from joulemap.row.sweep import (
    SweepCrossing as SweepCrossing,
    SweepPoint as SweepPoint,
    SweepSeries as SweepSeries,
    SweepWinner as SweepWinner,
)
from joulemap.row.utilization import (
    BatchZone as BatchZone,
    Grade as Grade,
    Pairing as Pairing,
    PrecisionGain as PrecisionGain,
    Remedy as Remedy,
    Utilization as Utilization,
    UtilizationFlag as UtilizationFlag,
)
from joulemap.row.validate import (
    OperatorScore as OperatorScore,
    PredictionScore as PredictionScore,
    ServingRefusal as ServingRefusal,
)
from joulemap.shortcut import (
    analyze as analyze,
    architectures as architectures,
    break_down as break_down,
    compare as compare,
    compare_breakdowns as compare_breakdowns,
    compare_models as compare_models,
    compare_parts as compare_parts,
    compare_runs as compare_runs,
    contrast_phases as contrast_phases,
    cost as cost,
    diff as diff,
    edp as edp,
    evaluate as evaluate,
    explain as explain,
    explore as explore,
    explore_all as explore_all,
    export as export,
    fleet as fleet,
    flip as flip,
    fusion as fusion,
    llm as llm,
    modules as modules,
    offload as offload,
    operators as operators,
    pareto as pareto,
    place as place,
    plot as plot,
    profile as profile,
    rank_hardware as rank_hardware,
    recommend as recommend,
    report as report,
    run as run,
    sensitivity as sensitivity,
    sql as sql,
    sweep as sweep,
    train as train,
    use as use,
    utilization as utilization,
    verify as verify,
    watch as watch,
    workload as workload,
)
from joulemap.store.connection import Patience as Patience
from joulemap.store.query import Rows as Rows
from joulemap.store.recover import Recovery as Recovery
from joulemap.store.run import AssumedEnergy as AssumedEnergy
from joulemap.store.statement import Statement as Statement
from joulemap.system.errors import (
    AmbiguousNameError as AmbiguousNameError,
    CatalogueError as CatalogueError,
    ConservationError as ConservationError,
    DatabaseError as DatabaseError,
    EngineError as EngineError,
    ExitCode as ExitCode,
    JoulemapError as JoulemapError,
    LockedDatabaseError as LockedDatabaseError,
    MissingPackageError as MissingPackageError,
    ModelError as ModelError,
    NoMeasurementError as NoMeasurementError,
    OlderDatabaseError as OlderDatabaseError,
    OutsideError as OutsideError,
    SqlError as SqlError,
    ThresholdError as ThresholdError,
    UnknownFamilyError as UnknownFamilyError,
    UnknownNameError as UnknownNameError,
    UnpricedActionError as UnpricedActionError,
    UnsupportedError as UnsupportedError,
    UntrustedError as UntrustedError,
    UsageError as UsageError,
)
from joulemap.trace.formula.own import OperatorCall as OperatorCall, OperatorCost as OperatorCost, formula as formula
from joulemap.workspace import Workspace as Workspace

__all__: list[str]
__version__: str
