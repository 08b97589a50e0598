"""A client of a partner API, with the standard library of Python 3.9 or later.

    PARTNER_API_URL=https://api.example PARTNER_API_KEY=... python3 partner_api.py demo DE FR
"""

import json
import os
import random
import re
import sys
import time
import uuid
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

RETRYABLE = {408, 409, 429, 500, 502, 503, 504}


class Problem(Exception):
    """The service refused a request: branch on `code`, show `errors` in the form."""

    def __init__(self, members):
        super().__init__(f"{members['detail']} ({members['code']}, {members['request_id']})")
        self.code = members["code"]
        self.errors = members.get("errors", [])


class Unreachable(Exception):
    """The service did not answer, or another server did."""


class _NoRedirects(HTTPRedirectHandler):
    """urllib follows redirects with all headers, so another server would get the key."""

    def redirect_request(self, *_arguments):
        return None


class PartnerApi:
    """`cache` can be any mutable mapping: a dict by default, `shelve.open(...)` to keep it between runs."""

    def __init__(self, url, key, partner, service="service", cache=None, timeout=10, retries=2):
        self._base = f"{url.rstrip('/')}/{service}"
        # A key that was read from a file ends with a line feed. Python's error for such a header would show the key.
        if not re.fullmatch(r"[!-~]+", key.strip()):
            raise ValueError("key must be one key")
        self._headers = {f"X-{service}-Partner-Key": key.strip(), "Accept": "application/json"}
        self._partner = partner
        self._cache = {} if cache is None else cache
        self._timeout = timeout  # Without one, urllib waits forever.
        self._retries = retries
        self._opener = build_opener(_NoRedirects)

    def get(self, path, **query):
        """Returns the `data` of an endpoint."""
        return self._get(self._url(path, query))[0]["data"]

    def rows(self, path, **query):
        """Yields the rows of a list, page by page."""
        url = self._url(path, query)
        while url:
            body, link = self._get(url)
            yield from body["data"]
            target = re.search(r'<([^>]*)>;\s*rel="next"', link)
            # The target is relative to the URL of this page.
            url = target and urljoin(url, target[1])
            if url and urlsplit(url)[:2] != urlsplit(self._base)[:2]:
                raise Unreachable("The next page is on another server, which must not get the key.")

    def sign_up(self, form, idempotency_key=None):
        """Submits a signup. To repeat one later, for example after a crash, pass the same key and form."""
        # One key for all attempts: a signup that was stored, but whose response was lost, is not stored again.
        headers = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        body = json.dumps({**form, "partner": self._partner}).encode()
        return self._send(f"{self._base}/partner/signups", headers, body)[1]["data"]

    def _url(self, path, query):
        # str(True) is "True", and without doseq a list is the text "['DE', 'FR']".
        query = {name: str(value).lower() if value in (True, False) else value for name, value in query.items()}
        return f"{self._base}{path}?{urlencode({'partner': self._partner, **query}, doseq=True)}"

    def _get(self, url):
        etag, body, link = self._cache.get(url, (None, None, ""))
        headers, answer = self._send(url, {"If-None-Match": etag} if etag else {})
        if answer is not None:
            body, link = answer, headers.get("Link", "")
            self._cache[url] = (headers["ETag"], body, link)
        return body, link

    def _send(self, url, headers, body=None):
        """Returns headers and body, which is None for 304. Retries: reads and signups are safe to repeat."""
        request = Request(url, body, {**self._headers, **headers})
        for attempt in range(self._retries + 1):
            wait = 2**attempt * random.uniform(0.1, 0.4)
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    return response.headers, json.loads(response.read())
            except HTTPError as error:  # Any status but 2xx.
                with error:
                    if error.code == 304:
                        return error.headers, None
                    failure = self._failure(error)
                retry_after = error.headers.get("Retry-After", "")
                wait = int(retry_after) if retry_after.isdigit() else wait
                if error.code not in RETRYABLE or wait > 60:
                    raise failure from None
            except (OSError, HTTPException, ValueError) as error:
                failure = Unreachable(f"{urlsplit(url).netloc} did not answer as expected: {error}")
            if attempt < self._retries:
                time.sleep(wait)
        raise failure

    @staticmethod
    def _failure(error):
        try:
            return Problem(json.loads(error.read()))
        except (OSError, HTTPException, ValueError, KeyError, TypeError):
            return Unreachable(f"Another server answered, with status {error.code}.")


if __name__ == "__main__":
    partner, *countries = sys.argv[1:]
    api = PartnerApi(os.environ["PARTNER_API_URL"], os.environ["PARTNER_API_KEY"], partner)
    try:
        for profile in api.rows("/public/profiles", country=countries):
            print(f"{profile['name']}, {profile['country']['name']}")
    except (Problem, Unreachable) as error:
        sys.exit(str(error))
