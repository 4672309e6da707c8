"""From a frozen panel and a configuration to a run that can be executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.artifacts import View, declared_files, view_arm
from coldrun.tasks.arms.base import Corpus, CorpusTree, Session, SessionContext
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.config import (
    ArmConfig,
    Config,
    ProcessArm,
    load_config,
    read_prices,
)
from coldrun.tasks.freeze.check_config import check_bars, check_config
from coldrun.tasks.freeze.lock import EvaluationFiles, FrozenPanel, read_frozen_panel
from coldrun.tasks.freeze.parts import primary_tasks
from coldrun.tasks.lib.canonical import digest_json
from coldrun.tasks.lib.errors import ConfigError, LockError
from coldrun.tasks.lib.git.clone import ensure_clone
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.machine.limits import Limits
from coldrun.tasks.lib.records import Point, Question, Reply, Task
from coldrun.tasks.lib.served import served
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.mine.mine_panel import open_corpus, with_repo
from coldrun.tasks.run.arm_identity import ArmIdentity, identify_arm
from coldrun.tasks.run.capture_key import constant_parts
from coldrun.tasks.run.execute import Abort, OpenSession, PlannedArm, plan_asks
from coldrun.tasks.run.manifest import point_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One evaluation as it lies on disk: its checked configuration, panel and folders."""

    config: Config
    config_path: Path
    frozen: FrozenPanel
    scratch: Path

    @property
    def config_dir(self) -> Path:
        """The folder that relative paths of the configuration start at."""
        return self.config_path.parent

    def questions(
        self, arm: ArmConfig, *, along_history: bool = False, only_primary: bool = False
    ) -> tuple[Question, ...]:
        """What an arm is asked, in panel order, or the oldest first: the parts of the panel, and of
        a built-in arm the whole population; only the primary part where that is wanted.

        Two trees that follow each other in history share most files, so what searches the base of
        each task reads least in that order. The ids of a panel are in no such order.
        """
        tasks = self.frozen.tasks
        if only_primary:
            tasks = primary_tasks(tasks, self.frozen.lock)
        elif isinstance(arm, ProcessArm):
            tasks = tuple(task for task in tasks if task.parts) or tasks
        return tuple(
            Question(
                id=task.id,
                query=task.query,
                answer=task.answer,
                k=self.config.k,
                seed=self.config.sample.seed,
                base=task.base,
            )
            for task in (sorted(tasks, key=_date) if along_history else tasks)
        )

    @property
    def has_base_per_task(self) -> bool:
        """Whether every task is searched in a tree of its own."""
        tasks = self.frozen.tasks
        return bool(tasks) and all(task.base is not None for task in tasks)

    def trials(self, override: int | None) -> dict[str, int]:
        """Trials by arm: as configured, or the same number for all."""
        return {arm.name: override or arm.trials for arm in self.config.arms}


def locate_corpus(evaluation: Evaluation) -> Corpus:
    """Find the frozen trees in the repositories that are there.

    Raises:
        LockError: A repository does not have the frozen commit or tree.
    """
    locked: Mapping[str, Any] = evaluation.frozen.lock["panel"]["corpus"]["trees"]
    if not locked:
        return Corpus(trees={})
    panel = evaluation.config.panel
    if panel.kind == "ticket-repos":
        from coldrun.tasks.mine.ticket_repos import locate_repositories

        found = locate_repositories(
            panel, config_dir=evaluation.config_dir, scratch=evaluation.scratch
        )
    else:
        found = {
            ".": open_corpus(panel, config_dir=evaluation.config_dir, scratch=evaluation.scratch)
        }
    return Corpus(
        trees={name: _corpus_tree(found, name, revision) for name, revision in locked.items()},
        is_per_task=evaluation.has_base_per_task,
    )


def _date(task: Task) -> str:
    return task.date or ""


def _corpus_tree(
    found: Mapping[str, Repository], name: str, revision: Mapping[str, str]
) -> CorpusTree:
    repository = found.get(name)
    if repository is None:
        raise LockError(
            f"the frozen panel searches a repository named {name!r}, which the configuration no "
            "longer finds; restore it or freeze again with --force"
        )
    if not repository.has_commit(revision["commit"]):
        raise LockError(
            f"{repository.git_dir} does not have the frozen base {revision['commit']}; fetch it, "
            "or name the right repository with --repo"
        )
    tree = repository.resolve(revision["commit"]).tree
    if tree != revision["tree"]:
        raise LockError(
            f"the base {revision['commit']} has the tree {tree}, the lock says {revision['tree']}"
        )
    return CorpusTree(git_dir=repository.git_dir, commit=revision["commit"], tree=tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all arms of one run share."""

    corpus: Corpus
    point: Point | None
    run_id: str


def plan_arms(
    evaluation: Evaluation,
    setting: Setting,
    *,
    trials: Mapping[str, int],
    only_primary: bool = False,
) -> tuple[PlannedArm, ...]:
    """Every arm with its identity, the answers it owes, and the way to open its sessions."""
    trees = {name: tree.tree for name, tree in setting.corpus.trees.items()}
    commits = {name: f"commit:{tree.commit}" for name, tree in setting.corpus.trees.items()}

    def read_by(arm: ArmConfig) -> Callable[[Question], Mapping[str, str]]:
        whole = commits if arm.reads_history else trees
        return lambda question: whole if question.base is None else {".": f"commit:{question.base}"}

    views = {arm.name: _view(arm, evaluation, setting.point) for arm in evaluation.config.arms}
    return tuple(
        PlannedArm(
            name=arm.name,
            role=arm.role,
            identity=(identity := _identify(arm, evaluation, setting.point, views[arm.name])),
            asks=plan_asks(
                identity,
                evaluation.questions(
                    arm,
                    along_history=setting.corpus.is_per_task and arm.order == "any",
                    only_primary=only_primary,
                ),
                trials=trials[arm.name],
                corpus_trees=read_by(arm),
                is_ordered=arm.order == "fixed",
            ),
            open_session=_opener(evaluation, arm, setting, views[arm.name]),
            open_without_product=_opener(
                evaluation, arm, setting, views[arm.name], is_knocked_out=True
            )
            if _is_knocked_out(arm, setting, views[arm.name])
            else None,
            parse=_parser(arm, evaluation),
            sessions=arm.sessions,
            is_ordered=arm.order == "fixed",
            is_dirty=setting.point is not None and setting.point.is_dirty and arm.runs_program,
        )
        for arm in evaluation.config.arms
    )


def _view(arm: ArmConfig, evaluation: Evaluation, point: Point | None) -> View | None:
    if not isinstance(arm, ProcessArm):
        return None
    if point is not None or evaluation.config.product is None:
        _refuse_gold(arm, evaluation, has_product=point is not None)
    return view_arm(
        arm,
        config_dir=evaluation.config_dir,
        point=point if arm.runs_program else None,
        choice=evaluation.config.run.sandbox,
        scratch=evaluation.scratch,
    )


def _identify(
    arm: ArmConfig, evaluation: Evaluation, point: Point | None, view: View | None
) -> ArmIdentity:
    return identify_arm(
        arm,
        config_dir=evaluation.config_dir,
        point=point,
        product=evaluation.config.product,
        view=view,
        scratch=evaluation.scratch,
    )


def _refuse_gold(arm: ProcessArm, evaluation: Evaluation, *, has_product: bool) -> None:
    """Refuse an arm whose declared files, copied into its sessions, hold the right answers.

    Raises:
        ConfigError: A declared file is the panel, or a folder that holds it.
    """
    panel, folder = evaluation.config.panel, evaluation.config_dir
    sources = [folder / name for name in (panel.file, panel.tickets) if name is not None]
    gold = [path.resolve() for path in (EvaluationFiles(evaluation.config_path).panel, *sources)]
    for name in declared_files(arm, config_dir=folder, has_product=has_product):
        place = (folder / name).resolve()
        held = next((path for path in gold if path.is_relative_to(place)), None)
        if held is not None:
            raise ConfigError(
                f"arm {arm.name!r}: its file {name!r} holds {held.name}, the tasks with their "
                "gold; declare the single files that the arm needs"
            )


def arm_digests(evaluation: Evaluation) -> dict[str, str]:
    """By arm, a digest of all that decides its answers but the product: files, programs,
    environment, and what the sandbox shows.

    Raises:
        ConfigError: A declared file or program does not exist.
    """
    return {
        arm.name: digest_json(
            constant_parts(_identify(arm, evaluation, None, _view(arm, evaluation, None)))
        )
        for arm in evaluation.config.arms
    }


def _is_knocked_out(arm: ArmConfig, setting: Setting, view: View | None) -> bool:
    """Whether the arm is the product, and can be asked without it."""
    return (
        isinstance(arm, ProcessArm)
        and arm.role == "candidate"
        and arm.is_the_product
        and setting.point is not None
        and view is not None
        and view.is_sandboxed
    )


def _parser(
    arm: ArmConfig, evaluation: Evaluation
) -> Callable[[Reply, str | None], tuple[str, ...]]:
    answer = evaluation.config.panel.answer_kind

    def parse(reply: Reply, corpus_dir: str | None) -> tuple[str, ...]:
        return parse_answer(reply.raw or "", arm, answer=answer, corpus_dir=corpus_dir).items

    return parse


def _opener(
    evaluation: Evaluation,
    arm: ArmConfig,
    setting: Setting,
    view: View | None,
    *,
    is_knocked_out: bool = False,
) -> OpenSession:
    config = evaluation.config

    def open_trial(trial: int, on_starting: Callable[[Abort], None] | None = None) -> Session:
        return open_session(
            SessionContext(
                arm=arm,
                corpus=setting.corpus,
                answer=config.panel.answer_kind,
                k=config.k,
                seed=config.sample.seed,
                trial=trial,
                point=setting.point if arm.runs_program else None,
                config_dir=evaluation.config_dir,
                scratch=evaluation.scratch,
                run_id=setting.run_id,
                on_starting=on_starting,
                view=view,
                limits=Limits(**config.limits.model_dump()),
                is_knocked_out=is_knocked_out,
            )
        )

    return open_trial


def prepare_evaluation_point(evaluation: Evaluation, revision: str | None) -> Point | None:
    """Check out and set up the product at a revision (None: as configured).

    Returns:
        The point, or None when the evaluation has no product.

    Raises:
        PointError: It cannot be fetched, verified or set up.
    """
    product = evaluation.config.product
    if product is None:
        return None
    from coldrun.tasks.product.points import prepare_point

    return prepare_point(
        product,
        config_dir=evaluation.config_dir,
        scratch=evaluation.scratch,
        revision=revision,
        choice=evaluation.config.run.sandbox,
    )


def fetch_product(config_path: Path, scratch: Path) -> None:
    """Fetch the repository of a product that is named by URL.

    Raises:
        RepositoryError: It cannot be reached.
    """
    product = load_config(config_path).product
    if product is not None:
        ensure_clone(product.repo, scratch, update=True)


def check_out(evaluation: Evaluation, revision: str | None) -> dict[str, Any] | None:
    """Check out and set up the product of an evaluation; gives the point as plain values."""
    current_watch().on_phase("checking out")
    point = prepare_evaluation_point(evaluation, revision)
    return None if point is None else point_values(point)


def load_evaluation(config_path: Path, *, scratch: Path, repo: str | None = None) -> Evaluation:
    """Read a configuration and its frozen panel, and check both.

    Args:
        repo: Where the panel's repository lies, in place of what the file says; it is not part of
            the panel. Relative to the present folder.

    Raises:
        ConfigError, LockError: They cannot be read, or do not fit.
    """
    config = read_prices(load_config(config_path), config_path.parent)
    check_config(config)
    frozen = read_frozen_panel(EvaluationFiles(config_path), config)
    check_bars(
        config,
        has_changes=bool(frozen.lock["panel"]["corpus"]["most_changed"]),
        tasks=len(primary_tasks(frozen.tasks, frozen.lock)),
    )
    return Evaluation(
        config=with_repo(config, repo),
        config_path=config_path.resolve(),
        frozen=frozen,
        scratch=scratch,
    )


def load_served(name: str) -> Evaluation:
    """An evaluation that is served in this process.

    Raises:
        UsageError: It is not.
        ConfigError, LockError: It cannot be read, or does not fit.
    """
    here = served()
    return load_evaluation(here.path_of(name), scratch=here.scratch, repo=here.repos.get(name))
