"""The checks that a result can have passed, as records name them; docs/record.md lists them.

A check with nothing to do counts as made.
"""

from collections.abc import Collection, Mapping

EDGE_SIZES, POISON, GUARDS, WORKSPACES = "edge-sizes", "poison", "guards", "workspaces"
OLD_OUTPUTS, FRESH_INPUTS, LONGER_ARRAYS, TIMED_SIZE = "old-outputs", "fresh-inputs", "longer-arrays", "timed-size"
LAUNCHES, CARRIED, REMAINDERS, COUNTED = "launches", "carried", "remainders", "counted"
VALUES = "values"

CHECKS = {  # name -> what holds where a result passed it
    EDGE_SIZES: "right at the edge sizes",
    VALUES: "right with large, small, tied and negative values and zeros in turn, at an edge size",
    POISON: "outputs held bytes before the launch that are not the answer, and all were written",
    GUARDS: "nothing beside the outputs was written",
    WORKSPACES: "right whatever bytes the workspace held before the launch",
    OLD_OUTPUTS: "right where outputs held the answer before, or another one",
    FRESH_INPUTS: "right on other inputs, after a launch that left its remains",
    LONGER_ARRAYS: "right with arrays as parts of longer ones, whose rest is unchanged",
    TIMED_SIZE: "the timed binary is right at the timed size, also where outputs held another answer before",
    LAUNCHES: "of a winner: right in further launches at the timed size, with other contents before each",
    CARRIED: "of a winner: right on other inputs at the timed size, after launches that left their remains",
    REMAINDERS: "of a winner: right at sizes with all remainders by 32 that the definition allows and NumPy can check "
    "quickly, and with each kind of values",
    COUNTED: "of a winner: right in each of 1,000 launches at its smallest size",
}
OF_ANSWERS = (  # they compare
    *(EDGE_SIZES, VALUES, POISON, WORKSPACES, OLD_OUTPUTS, FRESH_INPUTS, TIMED_SIZE),
    *(LAUNCHES, CARRIED, REMAINDERS, COUNTED),
)
USUAL: Mapping[int, tuple[str, ...]] = {  # rule of a trial -> the checks that trials passed then; none is ever changed
    0: (),  # before checks were recorded
    1: (EDGE_SIZES, POISON, GUARDS, WORKSPACES, OLD_OUTPUTS, FRESH_INPUTS, LONGER_ARRAYS, TIMED_SIZE),
    2: (EDGE_SIZES, VALUES, POISON, GUARDS, WORKSPACES, OLD_OUTPUTS, FRESH_INPUTS, LONGER_ARRAYS, TIMED_SIZE),
}
OF_WINNERS: Mapping[int, tuple[str, ...]] = {2: (REMAINDERS, COUNTED)}  # further ones, where launches were repeated


def lacking(made: Collection[str], rule: int) -> tuple[str, ...]:
    """Returns the checks of a winner that are usual by a rule and were not made."""
    usual = USUAL.get(rule, ()) + (OF_WINNERS.get(rule, ()) if LAUNCHES in made else ())
    return tuple(check for check in usual if check not in made)
