"""A client of a partner API, with the standard library of Python 3.9 or later.

    PARTNER_API_URL=https://api.example PARTNER_API_KEY=... python3 partner_api.py demo DE FR
"""

import json
import os
import queue
import random
import re
import sys
import threading
import time
import uuid
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

RETRYABLE = {408, 409, 429, 500, 502, 503, 504}
MAX_BYTES = 16 * 1024 * 1024  # Of a response; more is not of the service.


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
        return self._get(self._url(path, query), (dict, list))[0]["data"]

    def rows(self, path, **query):
        """Yields the rows of a list, page by page."""
        url = self._url(path, query)
        seen = set()
        while url:
            seen.add(url)
            body, link = self._get(url, list)
            yield from body["data"]
            url = self._next(url, link)
            if url in seen:
                raise Unreachable("The pages of the list do not end.")

    def sign_up(self, form, idempotency_key=None):
        """Submits a signup. To repeat one later, for example after a crash, pass the same key and form."""
        # One key for all attempts: a signup that was stored, but whose response was lost, is not stored again.
        headers = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        body = json.dumps({**form, "partner": self._partner}).encode()
        return self._send(f"{self._base}/partner/signups", headers, dict, body)[1]["data"]

    def _url(self, path, query):
        # str(True) is "True", and without doseq a list is the text "['DE', 'FR']".
        query = {name: str(value).lower() if value in (True, False) else value for name, value in query.items()}
        return f"{self._base}{path}?{urlencode({'partner': self._partner, **query}, doseq=True)}"

    def _next(self, url, link):
        """Resolves the target of the header, which is relative to the URL of the page."""
        target = re.search(r'<([^>]*)>;\s*rel="next"', link)
        if not target:
            return None
        try:
            following = urljoin(url, target[1])
            if urlsplit(following)[:2] == urlsplit(self._base)[:2]:
                return following
        except ValueError:  # It is no URL.
            pass
        raise Unreachable("The next page is on another server, which must not get the key.")

    def _get(self, url, kind):
        etag, body, link = self._cache.get(url, (None, None, ""))
        headers, answer = self._send(url, {"If-None-Match": etag} if etag else {}, kind)
        if answer is not None:
            body, link = answer, headers.get("Link", "")
            self._cache[url] = (headers["ETag"], body, link)
        return body, link

    def _send(self, url, headers, kind, body=None):
        """Returns headers and body, which is None for 304. Retries: reads and signups are safe to repeat."""
        request = Request(url, body, {**self._headers, **headers})
        for attempt in range(self._retries + 1):
            wait = 2**attempt * random.uniform(0.1, 0.4)
            try:
                status, fields, text = self._exchange(request)
            except (OSError, HTTPException, ValueError) as error:
                failure = Unreachable(f"{urlsplit(url).netloc} did not answer as expected: {error}")
            else:
                if status == 304 and "If-None-Match" in headers:
                    return fields, None
                members = _members(text)
                data = members.get("data")
                rows = data if isinstance(data, list) else [data]
                if status < 300 and isinstance(data, kind) and all(isinstance(row, dict) for row in rows):
                    return fields, members
                failure = Unreachable(f"Another server answered, with status {status}.")
                if all(isinstance(members.get(name), str) for name in ("code", "detail", "request_id")):
                    failure = Problem(members)
                # Only these digits: int() refuses others that str.isdigit() knows, and very long numbers.
                if re.fullmatch(r"[0-9]{1,9}", fields.get("Retry-After", "")):
                    wait = int(fields["Retry-After"])
                if status not in RETRYABLE or wait > 60:
                    raise failure
            if attempt < self._retries:
                time.sleep(wait)
        raise failure

    def _exchange(self, request):
        """Returns status, headers and body. A thread waits for them: the timeout of urllib is that of each read."""
        outcome = queue.SimpleQueue()

        def run():
            try:
                with self._open(request) as response:
                    outcome.put((response.status, response.headers, response.read(MAX_BYTES)))
            except Exception as error:
                outcome.put(error)

        threading.Thread(target=run, daemon=True).start()
        try:
            result = outcome.get(timeout=self._timeout)
        except queue.Empty:
            raise TimeoutError(f"no complete response within {self._timeout} seconds") from None
        if isinstance(result, Exception):
            raise result
        return result

    def _open(self, request):
        try:
            return self._opener.open(request, timeout=self._timeout)
        except HTTPError as error:  # Any status but 2xx is a response, too.
            return error


def _members(text):
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


if __name__ == "__main__":
    partner, *countries = sys.argv[1:]
    api = PartnerApi(os.environ["PARTNER_API_URL"], os.environ["PARTNER_API_KEY"], partner)
    try:
        for profile in api.rows("/public/profiles", country=countries):
            print(f"{profile['name']}, {profile['country']['name']}")
    except (Problem, Unreachable) as error:
        sys.exit(str(error))
