<?php

/** Renders the widget of the block. */

declare(strict_types=1);

namespace PartnerWidget;

/** What a visitor may ask for, with the longest text of each. Nothing else reaches the service. */
const PARAMETERS = ['q' => 100, 'country' => 2, 'industry' => 100, 'cursor' => 2000];

/** The member of a template. Links of an operator's own tables are not checked by the service: some are `javascript:`. */
function valueOf(array $data, string $name)
{
    $value = $data;
    foreach (explode('.', $name) as $member) $value = is_array($value) ? $value[$member] ?? null : null;
    $isLink = is_string($value) && preg_match('#^https?://#i', $value) === 1;
    return substr($name, -4) === '_url' && !$isLink ? null : $value;
}

/** Fills a template: `{{name}}` is escaped; `{{#name}}` repeats for the items of a list; `{{^name}}` is for none. */
function fill(string $template, array $data): string
{
    $fill = function (array $match) use ($data): string {
        [, $kind, $section, $inner, $name] = $match + ['', '', '', '', ''];
        $value = valueOf($data, $section . $name);
        $items = is_array($value) && $value === array_values($value) ? $value : [$value];
        $items = array_filter($items, fn($item) => !in_array($item, [null, false, ''], true));
        if ($kind === '^') return $items ? '' : fill($inner, $data);
        $draw = $kind === '#'
            ? fn($item) => fill($inner, (is_array($item) ? $item : []) + ['text' => $item] + $data)
            : fn($item) => is_scalar($item) ? htmlspecialchars((string) $item, ENT_QUOTES | ENT_SUBSTITUTE) : '';
        return implode('', array_map($draw, $items));
    };
    return preg_replace_callback('/{{([#^])([\w.]+)}}(.*?){{\/\2}}|{{ *([\w.]+) *}}/s', $fill, $template);
}

function card(array $profile): array
{
    return $profile + ['initial' => preg_match('/^./us', $profile['name'], $first) === 1 ? $first[0] : ''];
}

function prepare(array $widget, array $query): array
{
    $choices = fn(array $list, string $id, string $chosen) => array_map(
        fn(array $item) => $item + ['selected' => $item[$id] === $chosen],
        $list,
    );
    $price = function (array $plan): array {
        ['amount_minor' => $amount, 'exponent' => $exponent, 'currency' => $currency] = $plan['price'];
        $digits = $amount % 10 ** $exponent === 0 ? 0 : $exponent;
        $term = $plan['interval'] === 'once' ? 'once' : 'per ' . $plan['interval'];
        return $plan + ['amount' => number_format($amount / 10 ** $exponent, $digits)] + compact('currency', 'term');
    };
    return [
        'profiles' => array_map('PartnerWidget\card', $widget['profiles']),
        'countries' => $choices($widget['countries'], 'code', $query['country'] ?? ''),
        'industries' => $choices($widget['industries'], 'slug', $query['industry'] ?? ''),
        'plans' => array_map($price, $widget['plans']),
    ] + $widget;
}

/**
 * The widget as HTML, with what a search has found.
 *
 * @param callable $read returns the `data` of the widget
 * @param callable $search takes a query and returns the body of a page, or throws a \DomainException for a wrong query
 * @param array $keep the other parameters of the page
 */
function draw(array $parameters, callable $read, callable $search, array $keep): string
{
    [$query, $isInvalid] = [[], false];
    foreach (PARAMETERS as $name => $longest) {
        $value = $parameters["partner_$name"] ?? '';
        $value = is_string($value) ? trim($value) : '';
        $isInvalid = $isInvalid || preg_match("/^.{0,$longest}$/usD", $value) !== 1;
        if ($value !== '') $query[$name] = $value;
    }
    $attempt = function (callable $call): array {
        try {
            return $call();
        } catch (\DomainException $error) {
            return ['invalid' => true];
        } catch (\Throwable $error) {
            error_log($error->getMessage());
            return ['failed' => true];
        }
    };
    $find = function () use ($query, $search, $keep): array {
        $body = $search($query + ['limit' => 12]);
        [$next, $cursor] = [$keep, $body['page']['next_cursor']];
        foreach (array_merge($query, compact('cursor')) as $name => $value) $next["partner_$name"] = $value;
        $more = $cursor === null ? null : '?' . http_build_query($next, '', '&');
        $profiles = array_map('PartnerWidget\card', $body['data']);
        return compact('profiles', 'more') + [$profiles ? 'found' : 'none' => true];
    };
    $widget = $attempt(fn() => prepare($read(), $query));
    $find = $isInvalid ? fn() => ['invalid' => true] : $find;
    $shown = isset($widget['failed']) ? $widget : ($query ? $attempt($find) : ['newest' => true] + $widget);
    $kept = array_map(fn($name, $value) => compact('name', 'value'), array_keys($keep), $keep);
    $template = file_get_contents(__DIR__ . '/partner-widget.html');
    $data = $shown + ['query' => $query, 'keep' => $kept];
    return fill($template, $data + ['widget' => isset($widget['failed']) ? null : $widget]);
}
