"""Names of polarisations: linear (X, Y), circular (R, L), or linear against the horizon (H, V).

The first of each pair has the place 0 in products of two antennas, and the second the place 1.
"""

from ...core import schema

BASES = ("XY", "RL", "HV")


def polarisations(value: object) -> str:
    """Checks for the names of one or two polarisations of one pair, in the order of the samples."""
    names = str(schema.as_word(value)).upper()
    if not names or len(set(names)) < len(names) or not set(names) <= set(basis_of(names)):
        wanted = "one or both of X and Y, of R and L, or of H and V, in the order of the samples, as RL"
        raise schema.Unsound(f"is {schema.value_text(value)}, must be {wanted}")
    return names


def basis_of(names: str) -> str:
    """Returns the pair to which polarisations belong; "" if nothing names them."""
    return next((basis for basis in BASES if names and names[0] in basis), "")


def place_of(name: str) -> int:
    """Returns the place of a polarisation in products: 0 for X, R and H, 1 for Y, L and V."""
    return basis_of(name).index(name)
