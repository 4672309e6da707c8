"""The evaluation's configuration: one TOML file, checked strictly, unknown keys named."""

from coldrun.tasks.config.arm_config import (
    DESCRIPTIVE_KEYS,
    ArmConfig,
    ProcessArm,
    Section,
    ServerArm,
    names_the_question,
)
from coldrun.tasks.config.evaluation_config import (
    DEFAULT_EXCLUDE_GOLD,
    BarConfig,
    Config,
    HoldoutConfig,
    MeasureConfig,
    ModelPrices,
    PanelConfig,
    PanelUse,
    PricesConfig,
    PriceSnapshot,
    ProductConfig,
    RunConfig,
    SampleConfig,
    SplitConfig,
)
from coldrun.tasks.config.load_config import load_config, load_prices, parse_config, read_prices
