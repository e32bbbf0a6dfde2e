"""Spaces: conditional parameters, constraints counted by reason, and what a user may get wrong."""

from typing import Any

import pytest

from autotune import Config, Device, Space, UsageError, when
from autotune.core import space as spaces

pytestmark = pytest.mark.quick


def example() -> Space:
    space = Space(
        ALGORITHM=("subgroup", "register"),
        WGS=(32, 64),
        SG_SIZE=when((4, 8, 16), ALGORITHM="subgroup"),
    )

    @space.constraint("a subgroup lies in its block")
    def fits(problem: object, config: Config, device: object) -> bool:
        return bool(config.get("SG_SIZE", 1) * 4 < config.WGS)

    return space


def test_a_parameter_is_absent_where_it_means_nothing() -> None:
    configs = example().enumerate(None, None).configs
    assert [str(c) for c in configs] == [
        "ALGORITHM=subgroup,WGS=32,SG_SIZE=4",
        "ALGORITHM=subgroup,WGS=64,SG_SIZE=4",
        "ALGORITHM=subgroup,WGS=64,SG_SIZE=8",
        "ALGORITHM=register,WGS=32",
        "ALGORITHM=register,WGS=64",
    ]


def test_refusals_are_counted_by_reason() -> None:
    assert example().enumerate(None, None).refused == {"a subgroup lies in its block": 3}


def test_restriction_narrows_only_where_the_parameter_applies() -> None:
    configs = example().enumerate(None, None, {"SG_SIZE": (8,)}).configs
    assert [c.get("SG_SIZE") for c in configs] == [8, None, None]


def test_nearest_prefers_fewer_differences_then_smaller_ratios() -> None:
    nearest = example().enumerate(None, None).nearest({"ALGORITHM": "subgroup", "WGS": 64, "SG_SIZE": 16})
    assert str(nearest) == "ALGORITHM=subgroup,WGS=64,SG_SIZE=8"


def test_the_first_that_is_allowed_is_the_first_that_heuristics_allow_too() -> None:
    space = example()
    wide, narrow, small = ({"ALGORITHM": "subgroup", "WGS": 64, "SG_SIZE": n} for n in (16, 8, 4))
    assert space.first_allowed(None, Device("a GPU", "cuda", "sm_90"), (wide, narrow, small)) == narrow
    assert space.first_allowed(None, Device("a GPU", "cuda", "sm_90"), (wide, {"WGS": 64})) == {
        "WGS": 64
    }  # none is: the last

    @space.heuristic("subgroups are small")
    def is_small(problem: object, config: Config, device: object) -> bool:
        return bool(config.SG_SIZE == 4)

    assert space.first_allowed(None, Device("a GPU", "cuda", "sm_90"), (wide, narrow, small)) == small
    assert space.first_allowed(None, Device("a GPU", "cuda", "sm_90"), (wide, narrow)) == narrow
    with pytest.raises(ValueError, match="no configuration to choose from"):
        space.first_allowed(None, Device("a GPU", "cuda", "sm_90"), ())


def test_the_nearest_is_found_without_all_others() -> None:
    asked = list[str]()
    space = Space(
        KIND=("one", "two", "three"),
        N=(1, 2, 4, 8, 16),
        M=when((3, 6, 12), KIND=("two", "three")),
        DEPTH=when((0, 1, 5), KIND="one"),
        MORE=tuple(range(20)),
        WORD=("a", "b", "c"),
    )

    @space.constraint("a product is bounded")
    def bounded(problem: Any, config: Config, device: object) -> bool:
        asked.append(str(problem))
        return bool(config.N * config.get("M", 1) * (config.get("DEPTH", 1) + 1) % problem == 0 and config.MORE != 7)

    @space.constraint("a word is not the first one")
    def later(problem: Any, config: Config, device: object) -> bool:
        return bool(config.WORD != "a")

    wanted: list[dict[str, Any]] = [
        {"KIND": "one", "N": 4, "DEPTH": 5, "MORE": 7, "WORD": "a"},
        {"KIND": "two", "N": 16, "M": 3, "MORE": 0, "WORD": "a"},
        {"KIND": "three", "N": 2, "M": 6, "MORE": 19, "WORD": "a"},
    ]
    for problem in (2, 3, 6, 8, 12, 96):
        asked.clear()
        every = space.enumerate(problem, None)
        n_all = len(asked)
        for config in wanted:
            asked.clear()
            assert space.nearest(problem, None, config) == every.nearest(config), (problem, config)
            assert len(asked) < n_all
    with pytest.raises(UsageError, match="2700 violate: a product is bounded"):
        space.nearest(1000003, None, wanted[0])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ALGORITHM": "register", "WGS": 48}, "WGS may be 32, 64"),
        (
            {"ALGORITHM": "register", "WGS": 32, "SG_SIZE": 4},
            "SG_SIZE means nothing here: it needs ALGORITHM in {subgroup}",
        ),
        ({"ALGORITHM": "subgroup", "WGS": 32}, "lacks SG_SIZE"),
        ({"ALGORITM": "register"}, "'ALGORITM' is not a parameter (has ALGORITHM, WGS, SG_SIZE)"),
    ],
)
def test_a_config_that_cannot_be_is_refused_with_what_may_be(given: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as error:
        example().parse(given)
    assert says in str(error.value)


def test_parse_puts_parameters_into_the_order_of_the_space() -> None:
    config = example().parse({"SG_SIZE": 4, "WGS": 32, "ALGORITHM": "subgroup"})
    assert str(config) == "ALGORITHM=subgroup,WGS=32,SG_SIZE=4"


def test_config_is_immutable_and_equal_whatever_the_order() -> None:
    config = Config(WGS=32, COARSEN=2)
    assert config == Config(COARSEN=2, WGS=32) and hash(config) == hash(Config(COARSEN=2, WGS=32))
    with pytest.raises(AttributeError, match="immutable"):
        config.WGS = 64
    with pytest.raises(AttributeError, match="has WGS, COARSEN"):
        _ = config.UNROLL


def test_a_parameter_may_only_depend_on_an_earlier_one() -> None:
    with pytest.raises(ValueError, match="must be declared before"):
        Space(SG_SIZE=when((4,), ALGORITHM="subgroup"), ALGORITHM=("subgroup",))


def test_a_conditional_constraint_is_asked_only_where_it_applies() -> None:
    space = Space(MMA=("a", "b"), WIDTH=(1, 2))

    @space.constraint("a is narrow", MMA="a")
    def narrow(problem: object, config: Config, device: object) -> bool:
        return bool(config.WIDTH == 1)

    found = space.enumerate(None, None)
    assert [str(c) for c in found.configs] == ["MMA=a,WIDTH=1", "MMA=b,WIDTH=1", "MMA=b,WIDTH=2"]
    assert found.refused == {"a is narrow": 1}
    for wrong in ({"MMA": "c"}, {"SIZE": 1}):
        with pytest.raises(UsageError):
            space.constraint("never asked", **wrong)


def test_searches_keep_to_heuristics_and_what_these_refuse_runs() -> None:
    space = Space(WIDTH=(1, 2, 3))

    @space.constraint("WIDTH is below 3")
    def fits(problem: object, config: Config, device: object) -> bool:
        return bool(config.WIDTH < 3)

    @space.heuristic("WIDTH is not 1")
    def is_fast(problem: object, config: Config, device: object) -> bool:
        return bool(config.WIDTH != 1)

    found = space.enumerate(None, None)
    assert [str(c) for c in found.configs] == ["WIDTH=2"]
    assert found.refused == {"WIDTH is below 3": 1, "WIDTH is not 1": 1}
    broken = [space.broken(None, Config(WIDTH=width), None) for width in (1, 2, 3)]
    assert broken[:2] == [None, None] and broken[2] and broken[2].name == "fits"


def test_shared_memory_of_several_blocks() -> None:
    """A multiprocessor of sm_90 has 228 KiB, of which the system takes 1 KiB for each block."""
    device = Device("a GPU", "cuda", "sm_90", max_shared_bytes=227 * 1024)
    assert device.has_shared(227 * 1024) and not device.has_shared(227 * 1024 + 1)
    assert device.has_shared(113 * 1024, 2) and not device.has_shared(113 * 1024 + 1, 2)
    assert device.has_shared(56 * 1024, 4) and not device.has_shared(56 * 1024, 5)


def test_constraints_see_only_what_they_read() -> None:
    """One that decides early refuses all that could follow at once; one that reads everything is asked at the end."""
    asked: dict[str, int] = {"early": 0, "late": 0, "needs": 0}
    space = Space(A=(0, 1, 2), B=(1, 2, 3, 4), C=when((1, 2), B=(1, 2)), D=when((5, 6), C=(2, None)))

    @space.constraint("A is not 0")
    def early(problem: object, config: Config, device: object) -> bool:
        asked["early"] += 1
        return bool(config.A != 0)

    @space.constraint("few values in all")
    def late(problem: object, config: Config, device: object) -> bool:
        asked["late"] += 1
        return sum(int(v) for v in config.values()) < 11

    @space.constraint("B is a multiple of A", B=(2, 3, 4))
    def needs(problem: object, config: Config, device: object) -> bool:
        asked["needs"] += 1
        return config.B % config.A == 0  # 0 would divide

    found = space.enumerate(None, None)
    n_asked = dict(asked)
    combinations = [
        Config({"A": a, "B": b, **({"C": c} if c else {}), **({"D": d} if d else {})})
        for a in (0, 1, 2)
        for b in (1, 2, 3, 4)
        for c in ((1, 2) if b <= 2 else (None,))
        for d in ((5, 6) if c != 1 else (None,))
    ]
    assert list(found.configs) == [c for c in combinations if space.broken(None, c, None) is None]
    assert found.refused["A is not 0"] == 10 and len(found.configs) + sum(found.refused.values()) == len(combinations)
    assert n_asked["early"] == 4  # of nothing, and of each value
    assert n_asked["needs"] < 2 * len(combinations) / 3


def test_a_constraint_may_fail_where_an_earlier_one_would_have_refused() -> None:
    space = Space(A=(1, 2), B=(0, 1, 2))

    @space.constraint("B is not 0, which is known at the end")
    def not_zero(problem: object, config: Config, device: object) -> bool:
        return "B" in list(config) and config.B != 0

    @space.constraint("B divides A")
    def divides(problem: object, config: Config, device: object) -> bool:
        return config.A % config.B == 0

    assert [str(c) for c in space.enumerate(None, None).configs] == ["A=1,B=1", "A=2,B=1", "A=2,B=2"]


def test_a_parameter_may_exist_where_another_does_not() -> None:
    space = Space(MMA=("a", "b"), CHAIN=when((0, 8), MMA="a"), PART=when((1, 2), CHAIN=(8, None)))
    found = [str(c) for c in space.enumerate(None, None).configs]
    assert found == ["MMA=a,CHAIN=0", "MMA=a,CHAIN=8,PART=1", "MMA=a,CHAIN=8,PART=2", "MMA=b,PART=1", "MMA=b,PART=2"]


def test_a_constraint_may_be_asked_of_several_values() -> None:
    space = Space(MMA=("a", "b", "c"), N=(1, 2))

    @space.constraint("one, but for c", MMA=("a", "b"))
    def one(problem: object, config: Config, device: object) -> bool:
        return bool(config.N == 1)

    assert [str(c) for c in space.enumerate(None, None).configs] == ["MMA=a,N=1", "MMA=b,N=1", "MMA=c,N=1", "MMA=c,N=2"]
    with pytest.raises(UsageError, match="MMA=d is not in the space"):
        space.constraint("none", MMA=("a", "d"))


def test_enumerations_are_kept_and_not_more_of_them_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spaces, "MOST_CONFIGS", 2500)
    space = Space(A=tuple(range(10)), B=tuple(range(10)), C=tuple(range(10)))
    made = [0]

    @space.constraint("it is counted")
    def counted(problem: Any, config: Config, device: Any) -> bool:
        made[0] += config.A == config.B == config.C == 0
        return True

    first = space.enumerate(0, None)
    assert space.enumerate(0, None) is first and made == [1]
    for problem in range(20):
        assert len(space.enumerate(problem, None).configs) == 1000
    assert sum(len(each.configs) for each in space._kept.values()) <= 2500
    assert made == [20] and space.enumerate(19, None) and made == [20]
    monkeypatch.setattr(spaces, "MOST_CONFIGS", 10)  # what is asked for is kept in any case
    assert space.enumerate(0, None) is space.enumerate(0, None) and len(space._kept) == 1
