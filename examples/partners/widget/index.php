<?php

/** Serves a page with the widget, and the widget alone for searches: `php -S 127.0.0.1:3000 index.php`. The key stays here. */

declare(strict_types=1);

require __DIR__ . '/../php/PartnerApi.php';
require __DIR__ . '/partner-widget.php';

use PartnerApi\{Client, Problem};

$files = ['/partner-widget.css' => 'text/css', '/partner-widget.js' => 'text/javascript'];
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
header("Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src https:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'");
header('X-Content-Type-Options: nosniff');
header('Referrer-Policy: strict-origin-when-cross-origin');
if (isset($files[$path])) {
    header("Content-Type: $files[$path]; charset=utf-8");
    readfile(__DIR__ . $path);
    return;
}
if ($path !== '/' && $path !== '/partner-widget') {
    http_response_code(404);
    return;
}
if (!getenv('PARTNER_API_KEY')) {
    error_log('PARTNER_API_KEY is not set: README.md says how to start.');
    http_response_code(503);
    return;
}
// A visitor waits for the page.
$client = new Client(
    getenv('PARTNER_API_URL') ?: 'https://api.example',
    (string) getenv('PARTNER_API_KEY'),
    getenv('PARTNER_API_PARTNER') ?: 'demo',
    timeout: 3,
    retries: 0,
);
$search = function (array $query) use ($client): array {
    try {
        $result = $client->profiles($query)->first();
        return ['data' => $result->getArrayCopy(), 'page' => $result->page];
    } catch (Problem $problem) {
        throw $problem->response->status === 400 ? new \DomainException($problem->getMessage()) : $problem;
    }
};
$isPart = $path === '/partner-widget';
$options = ['src' => '/partner-widget', 'isPart' => $isPart];
['html' => $html, 'status' => $status] =
    PartnerWidget\draw($_GET, fn() => $client->widget()->getArrayCopy(), $search, $options);
// Every visitor gets the same: a cache in front of this server saves time and quota.
header('Cache-Control: ' . ($status === 503 ? 'no-store' : 'public, max-age=60'));
http_response_code($isPart ? $status : 200);
echo $isPart ? $html : str_replace('<!-- widget -->', $html, file_get_contents(__DIR__ . '/page.html'));
