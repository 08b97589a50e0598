"""A client of a partner API, with the standard library of Python 3.9 or later.

    PARTNER_API_URL=https://api.example PARTNER_API_KEY=... python3 partner_api.py demo DE FR
"""

import base64
import copy
import hashlib
import hmac
import json
import os
import queue
import random
import re
import sys
import threading
import time
import uuid
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPErrorProcessor, Request, build_opener

__version__ = "0.1.0"
RETRYABLE = {408, 409, 429, 500, 502, 503, 504}
MAX_BYTES = 16 * 1024 * 1024  # Of a response; more is not of the service.


class PartnerApiError(Exception):
    """A call failed. `response` is None if none arrived in full."""

    def __init__(self, message, response=None):
        super().__init__(message)
        self.response = response


class Problem(PartnerApiError):
    """The service refused a request: branch on `code`, show `errors` in the form. `problem` has all members."""

    def __init__(self, problem, response):
        self.problem = problem
        self.code = problem["code"]
        self.status = response.status
        self.errors = [error for error in problem.get("errors") or [] if isinstance(error, dict)]
        places = [f"{error.get('pointer') or error.get('parameter') or 'the body'}: {error.get('detail')}"
                  for error in self.errors]
        text = f"{problem['detail']} {'; '.join(places)}." if places else problem["detail"]
        super().__init__(f"{text} ({self.code}, {problem['request_id']})", response)


class Unreachable(PartnerApiError):
    """The service did not answer, or another server did."""


class WebhookError(Exception):
    """A delivery is not the service's, or is not of the last five minutes: respond with 400."""


class Response:
    """Status and headers of a response. Include `request_id` in support requests."""

    def __init__(self, status, headers):
        self.status = status
        self.headers = headers
        self.request_id = headers.get("X-Request-Id")
        self.replayed = "Idempotent-Replayed" in headers
        # Only these digits: int() refuses others that str.isdigit() knows, and very long numbers.
        seconds = re.fullmatch(r"[0-9]{1,9}", headers.get("Retry-After", ""))
        self.retry_after = int(seconds[0]) if seconds else None

    @property
    def rate_limits(self):
        """A dict for each limit that counted the request, as in the response of `verify_key()`."""
        limits = {}
        for name in ("RateLimit-Policy", "RateLimit"):
            items = re.findall(r'"(\w+)";\w=([0-9]{1,15});\w=([0-9]{1,15})', self.headers.get(name, ""))
            for policy, *numbers in items:
                limits.setdefault(policy, [policy]).extend(map(int, numbers))
        names = ("policy", "quota", "window_seconds", "remaining", "resets_in_seconds")
        return [dict(zip(names, values)) for values in limits.values()]


class Record(dict):
    """The data of a response, which is in `response`."""

    response = None


class Rows(list):
    """The rows of a response, which is in `response`. `page` is the position of a page in its list."""

    response = page = None


class Listing:
    """A list in pages: iterates over the rows of all pages, and fetches pages as needed."""

    def __init__(self, read, query):
        self._read, self._query = read, query

    def __iter__(self):
        for page in self.pages():
            yield from page

    def pages(self):
        """Yields `Rows`. To resume the list later, pass `page["next_cursor"]` as `cursor`."""
        query, seen = self._query, set()
        while True:
            rows = self._read(query)
            if not isinstance(rows, Rows) or not isinstance(rows.page, dict):
                raise Unreachable("The response is not a page.", rows.response)
            yield rows
            if rows.page.get("has_more") is False:
                return
            cursor = rows.page.get("next_cursor")
            if not isinstance(cursor, str) or cursor in seen:
                raise Unreachable("The list does not advance.", rows.response)
            seen.add(cursor)
            query = {**query, "cursor": cursor}

    def first(self):
        """Returns the first page."""
        return next(self.pages())


class _AnyStatus(HTTPErrorProcessor):
    """Any status is a response. By default, redirects are followed with all headers: another server gets the key."""

    def http_response(self, _request, response):
        return response

    https_response = http_response


class PartnerApi:
    """Calls the service. Queries are keyword arguments; a list repeats its parameter.

    `cache` can be any mutable mapping, such as `shelve.open(...)`: it keeps all responses. `user_agent` is the name and
    version of your program. `on_request(attempt)` and `on_response(attempt, seconds, response, error)`
    see every attempt, a dict with `method`, `url` and `attempt`, and never the key; their errors are ignored.
    """

    def __init__(self, url, key, partner, service="service", cache=None, timeout=10, retries=2, user_agent="",
                 on_request=None, on_response=None):
        if not re.fullmatch(r"https?://[^/@?#]+(/[^?#]*)?", url or "", re.I):
            raise ValueError("url must be an http:// or https:// address, such as https://api.example")
        # The partner is part of URLs, which are logged: a key must not get there by mistake.
        if not re.fullmatch(r"[a-z0-9-]+", partner or ""):
            raise ValueError("partner must be the slug of the key's partner")
        self._base = f"{url.rstrip('/')}/{service}"
        self._service, self._partner = service, partner
        self._secret = {}  # Shared with the copies that with_options() makes.
        self._use(key)
        self._rotating = threading.Lock()
        self._cache = cache
        self._timeout, self._retries = timeout, retries  # Without a timeout, urllib waits forever.
        self._headers = {
            "Accept": "application/json, application/problem+json",
            "User-Agent": f"partner-api-python/{__version__} {user_agent}".strip(),
            f"{service}-Version": "2026-11-20",
        }
        self._own_headers = {}
        self._on_request, self._on_response = on_request, on_response
        self._opener = build_opener(_AnyStatus)

    def with_options(self, timeout=None, retries=None, headers=None):
        """Returns a copy for calls with other options: `api.with_options(timeout=3).plans()`."""
        other = copy.copy(self)
        given = {"_timeout": timeout, "_retries": retries, "_own_headers": headers}
        vars(other).update({name: value for name, value in given.items() if value is not None})
        return other

    def problems(self, **query): return self.rows("/developer/problems", **query)
    def widget(self): return self.get("/partner-widget")
    def recent_profiles(self, **query): return self.get("/public/profiles/recent", **query)
    def profiles(self, **query): return self.rows("/public/profiles", **query)
    def banner(self): return self.get("/public/banner")
    def countries(self, **query): return self.get("/public/countries", **query)
    def industries(self, **query): return self.get("/public/industries", **query)
    def plans(self): return self.get("/public/plans")
    def report_summary(self, **query): return self.get("/partner/reports/summary", **query)
    def report_activity(self, **query): return self.rows("/partner/reports/activity", **query)
    def verify_key(self): return self.post("/developer/verify-key", {}, _safe=True)
    def revoke_key(self): return self.post("/developer/revoke-key", {})  # This is final.

    def rotate_key(self, store, overlap_seconds=None):
        """Replaces the key. `store(key)` keeps the new one, which is used once that has returned."""
        if not callable(store):
            raise TypeError("store must be a function that keeps the new key")
        body = {} if overlap_seconds is None else {"overlap_seconds": overlap_seconds}
        with self._rotating:  # Another rotation would revoke the new key.
            rotation = self.post("/developer/rotate-key", body, _safe=True)
            key = rotation.pop("key", None) if isinstance(rotation, Record) else None
            if not isinstance(key, str) or not key:
                raise Unreachable("The response has no key.", rotation.response)
            store(key)
            self._use(key)
        return rotation

    def profile(self, slug):
        if slug in ("", ".", ".."):  # The path would be that of another endpoint.
            raise ValueError("slug must not be '', '.' or '..'")
        return self.get(f"/public/profiles/{quote(slug, safe='')}")

    def sign_up(self, form, idempotency_key=None):
        """Submits a signup. To repeat one later, for example after a crash, pass the same key and form."""
        # One key for all attempts: a signup that was stored, but whose response was lost, is not stored again.
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        return self.post("/partner/signups", form, key)

    def get(self, path, **query):
        """Returns the data of an endpoint, also of one that the operator has added."""
        # str(True) is "True", and without doseq a list is the text "['DE', 'FR']".
        query = {name: str(value).lower() if isinstance(value, bool) else value
                 for name, value in query.items() if value is not None}
        return self._send("GET", f"{path}?{urlencode({'partner': self._partner, **query}, doseq=True)}")

    def rows(self, path, **query):
        """Returns a list of an endpoint, as a `Listing`."""
        return Listing(lambda query: self.get(path, **query), query)

    def post(self, path, body, idempotency_key=None, _safe=False):
        """Sends a body. Without an idempotency key, which the endpoint has to take, it is not retried."""
        content = json.dumps({**body, "partner": self._partner}).encode()
        headers = {"Content-Type": "application/json"}
        if idempotency_key is not None:
            if not re.fullmatch(r"[!-~][ -~]*", idempotency_key):
                raise ValueError("idempotency_key must be printable ASCII")
            headers["Idempotency-Key"] = idempotency_key
        return self._send("POST", path, headers, content, _safe or idempotency_key is not None)

    def _use(self, key):
        # A key that was read from a file ends with a line feed. Python's error for such a header would show the key.
        if not re.fullmatch(r"[!-~]+", str(key or "").strip()):
            raise ValueError("key must be one key")
        self._secret["key"] = key.strip()

    def _send(self, method, target, headers=None, body=None, is_safe=True):
        """Returns the data. Retries: reads, and what has an idempotency key, are safe to repeat."""
        key, url = self._secret["key"], self._base + target
        # No other key finds the response; the URL has the partner.
        name = hashlib.sha256(f"{key} {url}".encode()).hexdigest()
        cache = self._cache if method == "GET" and self._cache is not None else {}
        etag, kept = cache.get(name, (None, None))
        request = Request(url, body, self._own_headers)  # Equal names are replaced, in any case.
        own = {**self._headers, f"X-{self._service}-Partner-Key": key, **(headers or {})}
        for field, value in {**own, "If-None-Match": etag}.items() if etag else own.items():
            request.add_header(field, value)
        retries = self._retries if is_safe else 0
        for number in range(retries + 1):
            attempt = {"method": method, "url": url, "attempt": number}
            started = time.monotonic()
            _ignore(self._on_request, dict(attempt))
            try:
                response, text = self._exchange(request)
                is_kept = etag is not None and response.status == 304
                result = _read(kept if is_kept else text, response, is_kept)
            except PartnerApiError as error:
                _ignore(self._on_response, attempt, time.monotonic() - started, error.response, error)
                status, wait = (getattr(error.response, name, None) for name in ("status", "retry_after"))
                # The successor is another client's, unless an earlier attempt had no response.
                is_final = number == 0 and getattr(error, "code", "") == "rotation_conflict"
                if number == retries or is_final or (wait or 0) > 60 or status and status not in RETRYABLE:
                    raise
                time.sleep(min(2**number, 40) * random.uniform(0.25, 0.75) if wait is None else wait)
            else:
                _ignore(self._on_response, attempt, time.monotonic() - started, response, None)
                if response.status == 200 and response.headers.get("ETag"):
                    cache[name] = (response.headers["ETag"], text)
                return result

    def _exchange(self, request):
        """Returns response and text. A thread waits for them: the timeout of urllib is that of each read."""
        outcome, end = queue.SimpleQueue(), time.monotonic() + self._timeout

        def run():
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    parts, size = [], 0
                    while time.monotonic() < end and size < MAX_BYTES and (part := response.read1(65536)):
                        parts.append(part)
                        size += len(part)
                    if response.length:  # What is missing, if the server said how long the body is.
                        raise OSError("the response ended early")
                    outcome.put((Response(response.status, response.headers), b"".join(parts)))
            except Exception as error:
                outcome.put(error)

        threading.Thread(target=run, daemon=True).start()
        host = urlsplit(self._base).netloc
        try:
            result = outcome.get(timeout=self._timeout)
        except queue.Empty:
            result = TimeoutError(f"no complete response within {self._timeout} seconds")
        if isinstance(result, Exception):
            raise Unreachable(f"{host} did not answer as expected: {result}") from result
        return result


def verify_webhook(secret, headers, body):
    """Returns the event of a delivery, a dict with `id`, `type`, `timestamp` and `data`.

    `secret` is that of the webhook, or a list of which one must match; `body` is text or bytes as they arrived.
    """
    fields = {str(name).lower(): str(value) for name, value in dict(headers).items()}
    message_id, timestamp, signatures = (fields.get(f"webhook-{x}", "") for x in ("id", "timestamp", "signature"))
    content = body.encode() if isinstance(body, str) else bytes(body)
    is_signed = False
    for each in [secret] if isinstance(secret, str) else secret:
        encoded = re.fullmatch(r"whsec_([A-Za-z0-9+/]+={0,2})", each.strip())
        if not encoded or len(encoded[1]) % 4:
            raise ValueError("secret must be whsec_ and Base64")
        signed = f"{message_id}.{timestamp}.".encode() + content
        mac = b"v1," + base64.b64encode(hmac.digest(base64.b64decode(encoded[1]), signed, "sha256"))
        is_signed |= any(hmac.compare_digest(mac, each.encode()) for each in signatures.split(" "))
    if not is_signed:
        raise WebhookError("No signature in webhook-signature matches the secret and the body as it arrived.")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or abs(time.time() - int(timestamp)) > 300:
        raise WebhookError("webhook-timestamp is not within five minutes of the clock.")
    event = _members(content)
    if not event:
        raise WebhookError("The body is not an event.")
    return {**event, "id": message_id}


def _ignore(hook, *arguments):
    try:
        if hook is not None:
            hook(*arguments)
    except Exception:
        pass  # A hook cannot break a request.


def _read(text, response, is_kept):
    """Returns the data of a response with it."""
    members = _members(text)
    data = members.get("data")
    rows = data if isinstance(data, list) else [data]
    if (response.status < 300 or is_kept) and isinstance(data, (dict, list)) and None not in rows:
        result = Record(data) if isinstance(data, dict) else Rows(data)
        result.response, result.page = response, members.get("page")
        return result
    if all(isinstance(members.get(name), str) for name in ("code", "detail", "request_id")):
        raise Problem(members, response)
    raise Unreachable(f"Another server answered, with status {response.status}.", response)


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
        for profile in api.profiles(country=countries):
            print(f"{profile['name']}, {profile['country']['name']}")
    except PartnerApiError as error:
        sys.exit(str(error))
