"""A stack of a table: parts of each row from zero, with a key as the heading."""

from __future__ import annotations

from joulemap.show.present.draw.picture import draw_picture
from joulemap.show.present.draw.svg import draw_images
from joulemap.show.present.picture import make_stack

STACK = make_stack({"forward": [1.0, 3.0, None], "backward": [2.0, 6.0, None], "bubble": [0.0, 0.001, None]}, "time")


def test_the_longest_row_fills_the_width_and_parts_keep_their_proportion() -> None:
    drawn = draw_picture(STACK, 18)
    assert drawn.rows == ("██▓▓▓▓", "██████▓▓▓▓▓▓▓▓▓▓▓▓", "")
    assert drawn.heading.split("\n") == ["█ forward", "▓ backward"]


def test_a_part_too_short_to_see_is_left_out() -> None:
    assert STACK.parts == ("forward", "backward")


def test_a_stack_of_one_row_is_drawn_if_it_has_several_parts() -> None:
    assert make_stack({"used": [1.0], "spare": [2.0]}, "cost").is_drawn
    assert not make_stack({"used": [1.0]}, "cost").is_drawn


def test_an_image_has_a_bar_for_each_part() -> None:
    images = draw_images(STACK)
    assert [one.count("<rect") for one in images.rows] == [2, 2, 0]
    assert "forward" in images.heading
