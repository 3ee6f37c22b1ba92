"""Numbers as text that Prometheus understands."""

from prometheus_client.parser import text_string_to_metric_families

from ksana.observe.exposition import Histogram, Table


def test_labels_survive_the_way_whatever_they_hold() -> None:
    table = Table("odd_total", "counter", "Odd things.", ["what"])
    odd = 'a "quoted" \\ back\nslash'
    table.add(odd, amount=3)
    [family] = text_string_to_metric_families(table.text())
    assert [(sample.labels, sample.value) for sample in family.samples] == [({"what": odd}, 3)]


def test_a_full_table_counts_newcomers_under_other() -> None:
    table = Table("some_total", "counter", "Some.", ["who", "how"], limit=2)
    for who in ("a", "b", "c", "d", "a"):
        table.add(who, "x")
    assert table.values == {("a", "x"): 2, ("b", "x"): 1, ("other", "other"): 2}


def test_a_dropped_series_makes_room() -> None:
    table = Table("some", "gauge", "Some.", ["who"], limit=1)
    table.set("a", to=1)
    table.drop("a")
    table.set("b", to=2)
    assert table.values == {("b",): 2}


def test_buckets_add_up_and_a_bound_belongs_to_its_bucket() -> None:
    histogram = Histogram("took_seconds", "How long.", [0.1, 1.0])
    child = histogram.child()
    for value in (0.05, 0.1, 0.5, 7):
        histogram.observe(child, value)
    [family] = text_string_to_metric_families(histogram.text())
    assert {(sample.name, sample.labels.get("le")): sample.value for sample in family.samples} == {
        ("took_seconds_bucket", "0.1"): 2,
        ("took_seconds_bucket", "1.0"): 3,
        ("took_seconds_bucket", "+Inf"): 4,
        ("took_seconds_sum", None): 7.65,
        ("took_seconds_count", None): 4,
    }


def test_a_full_histogram_observes_newcomers_under_other() -> None:
    histogram = Histogram("took_seconds", "How long.", [1.0], ["who"], limit=1)
    assert histogram.child("a") is histogram.child("a")
    assert histogram.child("b") is histogram.child("c") is histogram.children[("other",)]
