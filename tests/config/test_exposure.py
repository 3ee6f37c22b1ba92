"""Beyond loopback a key is needed."""

import pytest

from ksana.config import check_exposure, is_loopback
from ksana.domain.errors import InvalidArgument
from tests.config.loading import Place


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
def test_loopback_needs_no_key(place: Place, host: str) -> None:
    assert is_loopback(host)
    check_exposure(place.load(HOST=host), stored_keys=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "ksana.internal", "localhost.example"])
def test_any_other_address_without_a_key_is_refused_with_the_way_out(place: Place, host: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check_exposure(place.load(HOST=host), stored_keys=False)
    [problem] = caught.value.problems
    assert problem.field == "server.host"
    assert "ksana key create" in problem.message
    assert "--insecure" in problem.message


def test_a_stored_key_a_given_key_or_insecure_opens_it(place: Place) -> None:
    check_exposure(place.load(HOST="0.0.0.0"), stored_keys=True)
    check_exposure(place.load(HOST="0.0.0.0", KSANA_API_KEY=f"ksk_{'1' * 16}_{'a' * 64}"), stored_keys=False)
    check_exposure(place.load(flags={"insecure": True}, HOST="0.0.0.0"), stored_keys=False)
