"""What is learnt of work: kinds from requests, frequency from allocations, and both fade."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.fragmentation.hosts import HALF_LIFE_S, MOST_FORMS, DeviceTask, LearntMix, size_of, work_of

ANY = DeviceTask({"VCPU": 4}, 1, 500)
ONLY_A = DeviceTask({"VCPU": 4}, 1, 500, frozenset({"A"}))
LARGE = DeviceTask({"VCPU": 96}, 8, 1000, frozenset({"A", "B"}))

tasks = st.builds(
    lambda amount, devices, kinds: DeviceTask({"VCPU": amount}, devices, 500, frozenset(kinds)),
    st.integers(1, 3),
    st.integers(1, 2),
    st.sets(st.sampled_from("AB")),
)


def learnt(*asked: DeviceTask, allocated: list[DeviceTask], at: float = 0.0) -> LearntMix:
    mix = LearntMix(at)
    for task in asked:
        mix.note_asked(work_of([task]))
    for task in allocated:
        mix.note_allocated(size_of(work_of([task])))
    return mix


def weights(mix: LearntMix) -> dict[object, float]:
    return {task.form: often for task, often in mix.expected(256).items()}


def test_allocations_of_one_size_are_divided_among_the_requests_for_it() -> None:
    mix = learnt(ANY, ONLY_A, ONLY_A, ONLY_A, LARGE, allocated=[ANY, ANY, LARGE])
    assert weights(mix) == {ONLY_A.form: 1.5, LARGE.form: 1.0, ANY.form: 0.5}


def test_asking_again_and_again_without_taking_anything_says_nothing() -> None:
    assert weights(learnt(*[LARGE] * 1000, ANY, allocated=[ANY])) == {ANY.form: 1.0}


def test_what_nobody_asked_for_may_be_of_any_kind() -> None:
    assert weights(learnt(LARGE, allocated=[ONLY_A])) == {ANY.form: 1.0}


def test_work_of_several_kinds_at_once_is_allocated_as_one_size() -> None:
    both = work_of([ONLY_A, DeviceTask({}, 1, 500, frozenset({"B"}))])
    mix = LearntMix(0.0)
    mix.note_asked(both)
    mix.note_allocated(size_of(work_of([DeviceTask({"VCPU": 4}, 2, 500)])))
    assert weights(mix) == dict.fromkeys(both, 1.0)


def test_half_is_forgotten_in_a_half_life_and_the_rest_in_the_end() -> None:
    mix = learnt(ANY, allocated=[ANY] * 8)
    mix.add(learnt(LARGE, allocated=[LARGE]), now=2 * HALF_LIFE_S)
    assert weights(mix) == {ANY.form: 2.0, LARGE.form: 1.0}
    mix.add(learnt(LARGE, allocated=[LARGE]), now=30 * HALF_LIFE_S)
    assert weights(mix).keys() == {LARGE.form}


def test_a_clock_that_goes_back_changes_nothing() -> None:
    mix = learnt(allocated=[ANY], at=1000.0)
    mix.add(learnt(allocated=[ANY]), now=0.0)
    assert weights(mix) == {ANY.form: 2.0}


def test_what_is_remembered_is_bounded_and_the_most_frequent_stays() -> None:
    mix = learnt(allocated=[LARGE] * 3)
    for round_ in range(3):
        first = round_ * MOST_FORMS
        mix.add(learnt(allocated=[DeviceTask({"VCPU": 1 + first + n}, 1, 500) for n in range(MOST_FORMS)]), now=0.0)
    assert len(mix.expected(10 * MOST_FORMS)) == MOST_FORMS
    assert [*mix.expected(1).values()] == [3.0]


@given(asked=st.lists(tasks), allocated=st.lists(tasks))
def test_a_document_is_read_as_it_was_written(asked: list[DeviceTask], allocated: list[DeviceTask]) -> None:
    mix = learnt(*asked, allocated=allocated)
    again = LearntMix.from_document(json.loads(json.dumps(mix.document())))
    assert weights(again) == pytest.approx(weights(mix))
    assert sum(weights(mix).values()) == pytest.approx(mix.total) == len(allocated)
