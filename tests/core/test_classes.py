"""Class lists: a segmentation's have colours and a void id, a classifier's neither; every other mixture is refused."""

import math

import numpy as np
import pytest
from refusals import refusal

from steadyseg.core.classes import CAMVID, ClassList

RGB = ((1, 2, 3), (4, 5, 6))


def test_a_classifier_s_list_has_as_many_names_as_there_are_and_neither_colours_nor_void() -> None:
    classes = ClassList.of_names(f"n{number:08d}" for number in range(21_841))  # ImageNet-21k
    assert len(classes) == 21_841 and classes.names[-1] == "n00021840"
    assert classes.colors == () and classes.void is None
    assert "void" in refusal(lambda: classes.void_id)
    assert not classes.palette().any()


def test_a_segmentation_s_list_has_both() -> None:
    classes = ClassList(("a", "b"), RGB, 7)
    assert classes.void == classes.void_id == 7
    np.testing.assert_array_equal(classes.palette()[:3], [*RGB, (0, 0, 0)])
    assert ClassList(("a", "b"), RGB).void == 255 and CAMVID.void == 11


@pytest.mark.parametrize(
    ("names", "colors", "void", "says"),
    [
        (("a", "b"), RGB, None, "or neither"),
        (("a", "b"), (), 255, "2 class names need as many colours, got 0"),
        (("a", "b"), RGB[:1], 255, "got 1"),
        (("a", "b"), ((1, 2), (3, 4)), 255, "red, green, blue"),
        (("a", "b"), ((1, 2, 256), (3, 4, 5)), 255, "0..255"),
        (("a", "b"), RGB, 256, "0..255"),
        (("a", "b"), RGB, 1, "outside 0..1, got 1"),
        *((("a", "b"), RGB, bad, "whole numbers in 0..255") for bad in (math.inf, math.nan, 7.5, True, "7")),
        (("a", "b"), ((1, 2, 3.5), (4, 5, 6)), 255, "whole numbers in 0..255"),
        (("a", 5), RGB, 255, "names are 1 to 100 printable characters, got 5"),
        (("a",), (), None, "two or more different names, got ['a']"),
        ((), (), None, "got []"),
        (("a", *map(str, range(5000)), "a"), (), None, "got 'a' 2 times among 5002"),
    ],
)
def test_every_other_mixture_is_refused(names: tuple[str, ...], colors: tuple, void: int | None, says: str) -> None:  # type: ignore[type-arg]
    assert says in refusal(lambda: ClassList(names, colors, void))
