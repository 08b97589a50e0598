<?php

/** A client of a partner API, for PHP 8.1 or later with cURL. */

declare(strict_types=1);

namespace PartnerApi;

/** A call failed. `response` is null if none arrived in full. */
class ApiException extends \RuntimeException
{
    public function __construct(string $message, public readonly ?Response $response = null)
    {
        parent::__construct($message);
    }
}

/** The service refused a request: branch on `problemCode`, show `errors` in the form. */
final class Problem extends ApiException
{
    public readonly string $problemCode;
    public readonly array $errors; // Each with `parameter` or `pointer`, and `detail`.

    /** @param array<string, mixed> $problem the whole document */
    public function __construct(public readonly array $problem, Response $response)
    {
        $this->problemCode = $problem['code'];
        $errors = is_array($problem['errors'] ?? null) ? $problem['errors'] : [];
        $this->errors = array_values(array_filter($errors, fn($error) => is_string($error['detail'] ?? null)));
        $place = fn(array $error) => (string) (($error['pointer'] ?? '') ?: ($error['parameter'] ?? 'the body'));
        $places = implode('; ', array_map(fn($error) => "{$place($error)}: {$error['detail']}", $this->errors));
        $text = $problem['detail'] . ($places === '' ? '' : " $places.");
        parent::__construct("$text ({$problem['code']}, {$problem['request_id']})", $response);
    }
}

/** The service did not answer, or another server did. */
final class Unreachable extends ApiException {}

/** A delivery is not the service's, or is not of the last five minutes: respond with 400. */
final class WebhookException extends \RuntimeException {}

/** Status and headers of a response. Include `requestId` in support requests. */
final class Response
{
    public readonly ?string $requestId;
    public readonly ?int $retryAfter; // Seconds.
    public readonly bool $replayed; // The response to an earlier request with the same idempotency key.

    /** @param array<string, string> $headers their names in lower case */
    public function __construct(public readonly int $status, public readonly array $headers)
    {
        $this->requestId = $headers['x-request-id'] ?? null;
        $this->retryAfter = self::readRetryAfter($headers['retry-after'] ?? '');
        $this->replayed = isset($headers['idempotent-replayed']);
    }

    /** RFC 9110 §10.2.3: seconds, as the service sends it, or a date, as a gateway may. */
    private static function readRetryAfter(string $field): ?int
    {
        if (preg_match('/^[0-9]{1,9}$/D', $field)) return (int) $field;
        $date = \DateTimeImmutable::createFromFormat('!D, d M Y H:i:s \G\M\T', $field, new \DateTimeZone('UTC'));
        return $date === false ? null : max(0, $date->getTimestamp() - time());
    }

    /** @return list<array{policy: string, quota: int, window_seconds: int, remaining: int, resets_in_seconds: int}> */
    public function rateLimits(): array
    {
        $limits = [];
        $names = ['ratelimit-policy' => ['quota', 'window_seconds'], 'ratelimit' => ['remaining', 'resets_in_seconds']];
        foreach ($names as $header => [$first, $second]) {
            $text = $this->headers[$header] ?? '';
            preg_match_all('/"(\w+)";\w=([0-9]{1,15});\w=([0-9]{1,15})/', $text, $items, PREG_SET_ORDER);
            foreach ($items as [, $policy, $one, $other]) {
                $limits[$policy] ??= ['policy' => $policy];
                $limits[$policy] += [$first => (int) $one, $second => (int) $other];
            }
        }
        return array_values($limits);
    }
}

/** The data of a response: read it like an array. `page` is the position of a page in its list. */
final class Result extends \ArrayObject implements \JsonSerializable
{
    public function __construct(array $data, public readonly ?array $page, public readonly Response $response)
    {
        parent::__construct($data);
    }

    public function jsonSerialize(): array { return $this->getArrayCopy(); }
}

/** A list in pages: `foreach` iterates over the rows of all pages, and fetches pages as needed. */
final class Listing implements \IteratorAggregate
{
    /** @param \Closure(array<string, mixed>): Result $read */
    public function __construct(private readonly \Closure $read, private readonly array $query) {}

    public function getIterator(): \Generator
    {
        foreach ($this->pages() as $page) foreach ($page as $row) yield $row;
    }

    /** @return \Generator<int, Result> To resume the list later, pass `page['next_cursor']` as `cursor`. */
    public function pages(): \Generator
    {
        $seen = [];
        for ($query = $this->query;; $query = ['cursor' => $cursor] + $query) {
            $result = ($this->read)($query);
            if ($result->page === null) throw new Unreachable('The response is not a page.', $result->response);
            yield $result;
            if (($result->page['has_more'] ?? null) === false) return;
            $cursor = $result->page['next_cursor'] ?? null;
            $advances = is_string($cursor) && !isset($seen[$cursor]);
            if (!$advances) throw new Unreachable('The list does not advance.', $result->response);
            $seen[$cursor] = true;
        }
    }

    /** The first page. */
    public function first(): Result { return $this->pages()->current(); }
}

/** Calls the service. Queries are arrays; a list repeats its parameter. */
final class Client
{
    public const VERSION = '0.1.0', API_VERSION = '2026-11-20';
    private const RETRYABLE = [408, 409, 429, 500, 502, 503, 504], MAX_BYTES = 16 * 1024 * 1024;

    /** The keys of clients and their copies, where neither var_dump() nor serialize() finds them. */
    private static ?\WeakMap $keys = null;
    private readonly string $base;
    private readonly object $token;
    private array $headers = [];

    /**
     * @param float $timeout seconds for each attempt
     * @param ?object $cache with get($name) and set($name, $text), such as a PSR-16 cache
     * @param ?\Closure $onRequest called with ['method', 'url', 'attempt'], and never with the key
     * @param ?\Closure $onResponse called with the same, seconds, ?Response and ?ApiException
     */
    public function __construct(
        string $url,
        #[\SensitiveParameter] string $key,
        private readonly string $partner,
        private readonly string $service = 'service',
        private float $timeout = 10.0,
        private int $retries = 2,
        private readonly string $userAgent = '',
        private readonly ?object $cache = null,
        private readonly ?\Closure $onRequest = null,
        private readonly ?\Closure $onResponse = null,
    ) {
        self::require(preg_match('#^https?://[^/@?\#]+(/[^?\#]*)?$#iD', $url), 'url must be like https://api.example.');
        // The partner is part of URLs, which are logged: a key must not get there by mistake.
        self::require(preg_match('/^[a-z0-9-]+$/D', $partner), "partner must be the slug of the key's partner.");
        $this->base = rtrim($url, '/') . "/$service";
        $this->token = new \stdClass();
        $this->useKey($key);
    }

    /** A copy for calls with other options: `$client->with(timeout: 3)->plans()`. */
    public function with(?float $timeout = null, ?int $retries = null, ?array $headers = null): self
    {
        $other = clone $this;
        [$other->timeout, $other->retries] = [$timeout ?? $this->timeout, $retries ?? $this->retries];
        $other->headers = array_change_key_case($headers ?? $this->headers);
        return $other;
    }

    public function verifyKey(): Result { return $this->post('/developer/verify-key', [], null, true); }
    public function problems(array $query = []): Listing { return $this->rows('/developer/problems', $query); }
    public function revokeKey(): Result { return $this->post('/developer/revoke-key', []); } // This is final.
    public function widget(): Result { return $this->get('/partner-widget'); }
    public function recentProfiles(array $query = []): Result { return $this->get('/public/profiles/recent', $query); }
    public function profiles(array $query = []): Listing { return $this->rows('/public/profiles', $query); }
    public function banner(): Result { return $this->get('/public/banner'); }
    public function countries(array $query = []): Result { return $this->get('/public/countries', $query); }
    public function industries(array $query = []): Result { return $this->get('/public/industries', $query); }
    public function plans(): Result { return $this->get('/public/plans'); }
    public function reportSummary(array $query = []): Result { return $this->get('/partner/reports/summary', $query); }
    public function reportActivity(array $query = []): Listing { return $this->rows('/partner/reports/activity', $query); }

    public function profile(string $slug): Result
    {
        // The path would be that of another endpoint.
        self::require(!in_array($slug, ['', '.', '..'], true), "slug must not be '', '.' or '..'.");
        return $this->get('/public/profiles/' . rawurlencode($slug));
    }

    /** Submits a signup. To repeat one later, for example after a crash, pass the same form and key. */
    public function signUp(array $form, ?string $idempotencyKey = null): Result
    {
        // One key for all attempts: a signup that was stored, but whose response was lost, is not stored again.
        return $this->post('/partner/signups', $form, $idempotencyKey ?? bin2hex(random_bytes(16)));
    }

    /**
     * Replaces the key: `$store` keeps the new one, which is used after that. If it throws or returns false, the old one
     * stays in use. If anything fails, call this again.
     */
    public function rotateKey(callable $store, ?int $overlapSeconds = null): Result
    {
        $body = $overlapSeconds === null ? [] : ['overlap_seconds' => $overlapSeconds];
        $rotation = $this->post('/developer/rotate-key', $body, null, true);
        $key = $rotation['key'] ?? null;
        if (!is_string($key) || $key === '') throw new Unreachable('The response has no key.', $rotation->response);
        unset($rotation['key']);
        if ($store($key) === false) throw new \RuntimeException('The new key was not stored.'); // As PHP's functions fail.
        $this->useKey($key);
        return $rotation;
    }

    /** The data of an endpoint, also of one that the operator has added: `get('/orders', ['state' => 'open'])`. */
    public function get(string $path, array $query = []): Result
    {
        $pairs = [];
        foreach (['partner' => $this->partner] + $query as $name => $value) {
            foreach (is_array($value) ? $value : [$value] as $item) { // http_build_query() writes country[0]=DE.
                $text = is_bool($item) ? var_export($item, true) : (string) $item;
                if ($item !== null) $pairs[] = rawurlencode((string) $name) . '=' . rawurlencode($text);
            }
        }
        return $this->send('GET', "$path?" . implode('&', $pairs), [], null, true);
    }

    public function rows(string $path, array $query = []): Listing
    {
        return new Listing(fn(array $query) => $this->get($path, $query), $query);
    }

    /** Sends a body. Without an idempotency key, which the endpoint has to take, it is not retried. */
    public function post(string $path, array $body, ?string $idempotencyKey = null, bool $isSafe = false): Result
    {
        $headers = ['content-type' => 'application/json'];
        if ($idempotencyKey !== null) $headers['idempotency-key'] = $idempotencyKey;
        $content = json_encode(['partner' => $this->partner] + $body, JSON_THROW_ON_ERROR);
        return $this->send('POST', $path, $headers, $content, $isSafe || $idempotencyKey !== null);
    }

    private function useKey(#[\SensitiveParameter] string $key): void
    {
        // A key that was read from a file ends with a line feed.
        self::require(preg_match('/^[!-~]+$/D', trim($key)), 'key must be one key.');
        self::$keys ??= new \WeakMap();
        self::$keys[$this->token] = trim($key);
    }

    private static function require(mixed $condition, string $message): void
    {
        if (!$condition) throw new \InvalidArgumentException($message);
    }

    private function send(string $method, string $target, array $headers, ?string $body, bool $isSafe): Result
    {
        [$key, $url] = [self::$keys[$this->token], $this->base . $target];
        $name = hash('sha256', "$key $url"); // No other key finds the response; the URL has the partner.
        $text = $method === 'GET' ? $this->cache?->get($name) : null;
        [$etag, $kept] = explode("\n", is_string($text) ? $text : '', 2) + ['', ''];
        $headers += [
            "x-$this->service-partner-key" => $key,
            'accept' => 'application/json, application/problem+json',
            'user-agent' => trim('partner-api-php/' . self::VERSION . " $this->userAgent"),
            "$this->service-version" => self::API_VERSION,
        ] + ($etag === '' ? [] : ['if-none-match' => $etag]) + $this->headers;
        // cURL leaves out a field without a value, and sends line feeds: what follows them would be another request.
        foreach ($headers as $field => $value) {
            $isLine = trim((string) $value) !== '' && !preg_match('/[\x00-\x1f\x7f]/', $field . $value);
            self::require($isLine, "$field must be one line of text.");
        }
        for ($number = 0;; $number++) {
            $attempt = ['method' => $method, 'url' => $url, 'attempt' => $number];
            $this->notify($this->onRequest, $attempt);
            [$started, $error, $response] = [microtime(true), null, null];
            try {
                [$response, $text] = $this->exchange($url, $headers, $body);
                $isKept = $etag !== '' && $response->status === 304;
                $result = self::read($isKept ? $kept : $text, $response, $isKept);
                $tag = $method === 'GET' && !$isKept ? $response->headers['etag'] ?? '' : '';
                if ($tag !== '') $this->cache?->set($name, "$tag\n$text");
                return $result;
            } catch (ApiException $error) {
                [$status, $wait] = [$error->response?->status, $error->response?->retryAfter];
                // The successor is another client's, unless an earlier attempt had no response.
                $isFinal = $number === 0 && $error instanceof Problem && $error->problemCode === 'rotation_conflict';
                $isRetryable = $status === null || in_array($status, self::RETRYABLE, true);
                if (!$isSafe || $number >= $this->retries || $isFinal || !$isRetryable || $wait > 60) throw $error;
            } finally {
                $this->notify($this->onResponse, $attempt, microtime(true) - $started, $response, $error);
            }
            usleep((int) (1e6 * ($wait ?? min(2 ** $number, 40) * mt_rand(250, 750) / 1000)));
        }
    }

    private function notify(?\Closure $hook, mixed ...$arguments): void
    {
        try { $hook === null || $hook(...$arguments); } catch (\Throwable) {} // A hook cannot break a request.
    }

    private function exchange(string $url, #[\SensitiveParameter] array $headers, ?string $body): array
    {
        [$fields, $text, $curl] = [[], '', curl_init($url)];
        curl_setopt_array($curl, [
            CURLOPT_HTTPHEADER => array_map(fn($name, $value) => "$name: $value", array_keys($headers), $headers),
            CURLOPT_FOLLOWLOCATION => false, // Another server would get the key.
            CURLOPT_TIMEOUT_MS => max(1, (int) ($this->timeout * 1000)), // cURL has no limit by default.
            CURLOPT_HEADERFUNCTION => function ($_, string $line) use (&$fields): int {
                // An informational response comes first.
                $fields = str_starts_with($line, 'HTTP/') ? [] : $fields;
                [$name, $value] = explode(':', $line, 2) + [1 => null];
                if ($value !== null) $fields[strtolower($name)] = trim($value);
                return strlen($line);
            },
            CURLOPT_WRITEFUNCTION => function ($_, string $part) use (&$text): int {
                $text .= $part;
                return strlen($text) > self::MAX_BYTES ? -1 : strlen($part);
            },
        ] + ($body === null ? [] : [CURLOPT_POSTFIELDS => $body]));
        $failure = curl_exec($curl) === false ? curl_error($curl) : null;
        if ($failure !== null) throw new Unreachable("The service did not answer as expected: $failure.");
        return [new Response(curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $fields), $text];
    }

    private static function read(string $text, Response $response, bool $isKept): Result
    {
        $members = is_array($members = json_decode($text, true)) ? $members : [];
        $data = $members['data'] ?? null;
        $rows = is_array($data) && array_is_list($data) ? $data : [$data];
        $page = is_array($members['page'] ?? null) ? $members['page'] : null;
        $isData = ($response->status < 300 || $isKept) && is_array($data) && !in_array(null, $rows, true);
        if ($isData) return new Result($data, $page, $response);
        $texts = [$members['code'] ?? null, $members['detail'] ?? null, $members['request_id'] ?? null];
        if ($texts === array_filter($texts, 'is_string')) throw new Problem($members, $response);
        throw new Unreachable("Another server answered, with status $response->status.", $response);
    }
}

/**
 * The event of a delivery, with `id`, `type`, `timestamp` and `data`. One of several secrets must match.
 *
 * @param array<string, mixed> $headers of getallheaders(), PSR-7 or $_SERVER
 * @param string $body as it arrived: file_get_contents('php://input')
 * @throws WebhookException
 */
function verifyWebhook(#[\SensitiveParameter] string|array $secret, array $headers, string $body): array
{
    [$fields, $isSigned] = [[], false];
    foreach ($headers as $name => $value) {
        $name = preg_replace('/^http-/', '', strtolower(strtr((string) $name, '_', '-')));
        $fields[$name] = (string) (is_array($value) ? reset($value) : $value);
    }
    [$id, $timestamp, $signatures] = array_map(fn($x) => $fields["webhook-$x"] ?? '', ['id', 'timestamp', 'signature']);
    foreach ((array) $secret as $each) {
        $raw = preg_match('/^whsec_(.+)$/D', trim($each), $parts) === 1 ? base64_decode($parts[1], true) : '';
        if (!$raw) throw new \InvalidArgumentException('secret must be whsec_ and Base64.');
        $mac = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $raw, true));
        foreach (explode(' ', $signatures) as $signature) $isSigned = hash_equals($mac, $signature) || $isSigned;
    }
    if (!$isSigned) throw new WebhookException('No signature matches the secret and the body as it arrived.');
    if (preg_match('/^[0-9]{1,12}$/D', $timestamp) !== 1 || abs(time() - (int) $timestamp) > 300) {
        throw new WebhookException('webhook-timestamp is not within five minutes of the clock.');
    }
    $event = json_decode($body, true);
    if (!is_array($event)) throw new WebhookException('The body is not an event.');
    return ['id' => $id] + $event;
}
