"""The codes of images that are refused."""

from recordgen.errors import PayloadError
from recordgen.payloads.check import check_image
from tests.conftest import error_of
from tests.settings import payload_settings


def refusal(data, check=check_image, **options):
    """Return the code with which ``check`` refuses an image; ``options`` are of a conversion."""
    more = (payload_settings(**options),) if check is check_image else ()
    return error_of(PayloadError, check, data, *more).code


def by_name(**by_code):
    """Return files, or what makes them, each with its code, by name."""
    return {name: (made, code) for code, each in by_code.items() for name, made in each.items()}
