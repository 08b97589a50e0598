<?php
/**
 * Plugin Name:       Partner Directory
 * Description:       Shows the directory and the widget of a partner API, and sends it the signups of a form.
 * Version:           1.0.0
 * Requires at least: 5.9
 * Requires PHP:      7.4
 * License:           MIT
 * Text Domain:       partner-directory
 *
 * All requests leave from this server: the key is in no page, script or URL.
 */

namespace Partner_Directory;

use WP_Error;

defined( 'ABSPATH' ) || exit;
require __DIR__ . '/partner-widget.php';

const OPTION  = 'partner_directory';
const SERVICE = 'service'; // The first segment of the paths, unless the operator has changed it.
const NAMED   = array( 'name' => 'string' );
const CARD    = NAMED + array( 'headline' => 'string', 'industry' => NAMED, 'country' => NAMED ); // The shape of a profile.

/** The settings: address, partner, key, and `label`, which describes the key. */
function settings(): array {
	return array_merge( array_fill_keys( array( 'url', 'partner', 'key', 'label' ), '' ), (array) get_option( OPTION ) );
}

/**
 * Whether a value has the members that the plugin reads: another server may answer at the address, too.
 *
 * @param mixed        $value What was received.
 * @param string|array $shape The name of a type; or the shapes of members, where `*` stands for each item of a list.
 */
function has_shape( $value, $shape ): bool {
	if ( ! is_array( $shape ) || ! is_array( $value ) ) {
		return gettype( $value ) === $shape;
	}
	foreach ( $shape as $name => $member ) {
		foreach ( '*' === $name ? $value : array( $value[ $name ] ?? null ) as $item ) {
			if ( ! has_shape( $item, $member ) ) {
				return false;
			}
		}
	}
	return true;
}

/**
 * Sends a request.
 *
 * @param array        $args  `headers`, `timeout`, and `body`, which is sent as JSON.
 * @param string|array $shape Of the `data` that the plugin reads.
 * @return array|WP_Error `status`, `body` and `etag`; or the code, detail, `status` and wrong `fields` of a problem.
 */
function send( array $settings, string $method, string $path, array $args, $shape ) {
	$headers  = array(
		'X-' . ucfirst( SERVICE ) . '-Partner-Key' => $settings['key'],
		'Accept'                                   => 'application/json, application/problem+json',
		'Content-Type'                             => 'application/json',
	);
	$response = wp_remote_request(
		$settings['url'] . '/' . SERVICE . $path,
		array(
			'method'              => $method,
			'redirection'         => 0, // By default WordPress follows redirects, and would send the key to another server.
			'timeout'             => $args['timeout'] ?? 3, // Seconds for which a visitor waits; 5 by default.
			'limit_response_size' => 4 * MB_IN_BYTES,
			'headers'             => $headers + ( $args['headers'] ?? array() ),
			'body'                => isset( $args['body'] ) ? wp_json_encode( $args['body'] ) : null,
		)
	);
	if ( is_wp_error( $response ) ) {
		return new WP_Error( 'unreachable', $response->get_error_message() );
	}
	$status = (int) wp_remote_retrieve_response_code( $response );
	$body   = json_decode( wp_remote_retrieve_body( $response ), true );
	$copied = 304 === $status && isset( $args['headers']['If-None-Match'] );
	if ( $copied || ( $status < 300 && has_shape( $body, array( 'data' => $shape ) ) ) ) {
		$etag = current( (array) wp_remote_retrieve_header( $response, 'etag' ) );
		return compact( 'status', 'body', 'etag' );
	}
	if ( has_shape( $body, array_fill_keys( array( 'code', 'detail', 'request_id' ), 'string' ) ) ) {
		$fields = array();
		foreach ( (array) ( $body['errors'] ?? array() ) as $item ) {
			$name = $item['parameter'] ?? $item['pointer'] ?? null;
			if ( is_string( $name ) && is_string( $item['detail'] ?? null ) ) {
				$fields[ ltrim( $name, '/' ) ] = $item['detail'];
			}
		}
		return new WP_Error( $body['code'], $body['detail'], compact( 'status', 'fields' ) );
	}
	/* translators: %d: an HTTP status */
	$message = sprintf( __( 'Another server answered, with status %d.', 'partner-directory' ), $status );
	return new WP_Error( 'not_the_service', $message );
}

/** Says what happened, and what an administrator can do about it. */
function explain( WP_Error $error ): string {
	$address = __( 'Check the address of the service.', 'partner-directory' );
	$new_key = __( 'Ask the operator for another key.', 'partner-directory' );
	$actions = array(
		'not_set_up'          => '',
		'unreachable'         => $address,
		'not_the_service'     => $address,
		'route_not_found'     => $address,
		'key_missing'         => __( 'A proxy drops the header of the key.', 'partner-directory' ),
		'key_invalid'         => __( 'Copy the whole key again. If it is complete, it belongs to another service.', 'partner-directory' ),
		'key_revoked'         => $new_key,
		'key_expired'         => $new_key,
		'key_disabled'        => __( 'Ask the operator to enable it.', 'partner-directory' ),
		'partner_mismatch'    => __( 'Check the partner.', 'partner-directory' ),
		'partner_suspended'   => __( 'Ask the operator to resume it.', 'partner-directory' ),
		'address_not_allowed' => __( 'Ask the operator to allow the address of this server.', 'partner-directory' ),
		'scope_missing'       => __( 'Ask the operator to grant it.', 'partner-directory' ),
		'module_inactive'     => __( 'Ask the operator to activate it.', 'partner-directory' ),
	);
	$problem = (array) $error->get_error_data();
	$text    = rtrim( $error->get_error_message(), '.' ) . '.';
	foreach ( $problem['fields'] ?? array() as $name => $detail ) {
		$text .= " $name: $detail.";
	}
	return $text . ' ' . ( $actions[ $error->get_error_code() ] ?? __( 'Try again in a minute.', 'partner-directory' ) );
}

/**
 * Checks the settings form. Settings are saved if the service accepts the key.
 *
 * @param mixed $input What was posted.
 */
function verify_settings( $input ): array {
	$saved = settings();
	$input = array_map( 'trim', array_filter( (array) $input, 'is_string' ) ) + array_fill_keys( array( 'url', 'partner', 'key' ), '' );
	$new   = array( 'url' => untrailingslashit( esc_url_raw( $input['url'] ) ) ) + array_intersect_key( $input, $saved );
	$url   = wp_parse_url( $new['url'] );
	// An empty field keeps the key, but only for its own address: it must not be sent to another one.
	if ( '' === $new['key'] && $new['url'] === $saved['url'] ) {
		$new['key'] = $saved['key'];
	}
	if ( 'https' !== ( $url['scheme'] ?? '' ) && ! in_array( $url['host'] ?? '', array( 'localhost', '127.0.0.1' ), true ) ) {
		$error = __( 'The address must start with https://, because the key is a secret.', 'partner-directory' );
	} elseif ( ! preg_match( '/^[a-z0-9-]+$/D', $new['partner'] ) ) {
		$error = __( 'The partner is a name of lower-case letters, digits and hyphens.', 'partner-directory' );
	} elseif ( ! preg_match( '/^[!-~]+$/D', $new['key'] ) ) {
		$error = __( 'Enter the key.', 'partner-directory' );
	} else {
		$shape  = array(
			'partner' => array( 'name' => 'string' ),
			'key'     => array( 'name' => 'string', 'hint' => 'string' ),
			'modules' => array( '*' => array( 'module' => 'string', 'ready' => 'boolean' ) ),
		);
		$result = send( $new, 'POST', '/developer/verify-key', array( 'timeout' => 10, 'body' => array( 'partner' => $new['partner'] ) ), $shape );
		$error  = is_wp_error( $result ) ? explain( $result ) : '';
	}
	if ( '' !== $error ) {
		// WordPress prints these messages as HTML.
		add_settings_error( OPTION, 'refused', esc_html( __( 'Not saved.', 'partner-directory' ) . ' ' . $error ) );
		return '' === $saved['key'] && isset( $result ) ? array( 'key' => '' ) + $new : $saved;
	}
	$data         = $result['body']['data'];
	$new['label'] = $data['partner']['name'] . ', ' . $data['key']['name'] . ' (' . $data['key']['hint'] . ')';
	$ready        = wp_list_pluck( wp_list_filter( $data['modules'], array( 'ready' => true ) ), 'module' );
	$missing      = array_diff( array( 'profiles', 'countries', 'pricing', 'signup', 'widget' ), $ready );
	if ( $missing ) {
		/* translators: %s: names of modules */
		$text = sprintf( __( 'Saved. Ask the operator for these modules: %s.', 'partner-directory' ), implode( ', ', $missing ) );
		add_settings_error( OPTION, 'not_ready', esc_html( $text ), 'warning' );
	}
	return $new;
}

/** Draws the settings page. It never shows the key. */
function render_settings(): void {
	$settings = settings();
	$fields   = array(
		'url'     => array( 'url', __( 'Address of the service', 'partner-directory' ), $settings['url'] ),
		'partner' => array( 'text', __( 'Partner', 'partner-directory' ), $settings['partner'] ),
		'key'     => array( 'password', __( 'Key', 'partner-directory' ), '' ),
	);
	echo '<div class="wrap"><h1>' . esc_html( get_admin_page_title() ) . '</h1><form action="options.php" method="post"><table class="form-table">';
	settings_fields( OPTION );
	foreach ( $fields as $name => list( $type, $label, $value ) ) {
		$input = '<tr><th><label for="pd-%1$s">%2$s</label></th><td><input class="regular-text" autocomplete="off" id="pd-%1$s" name="%3$s[%1$s]" type="%4$s" value="%5$s"></td></tr>';
		printf( $input, esc_attr( $name ), esc_html( $label ), esc_attr( OPTION ), esc_attr( $type ), esc_attr( $value ) ); // phpcs:ignore WordPress.Security.EscapeOutput
	}
	echo '</table>';
	if ( '' !== $settings['key'] ) {
		/* translators: %s: names of the partner and the key, and the end of the key */
		echo '<p>' . esc_html( sprintf( __( 'In use: %s. To keep this key, leave its field empty.', 'partner-directory' ), $settings['label'] ) ) . '</p>';
	}
	submit_button( __( 'Verify and save', 'partner-directory' ) );
	echo '</form></div>';
}

/** A path with the partner and a query. */
function target( string $path, array $query = array() ): string {
	// PHP's http_build_query() and add_query_arg() write lists as country[0]=DE. The service takes country=DE&country=FR.
	$path .= '?partner=' . rawurlencode( settings()['partner'] );
	foreach ( $query as $parameter => $values ) {
		foreach ( (array) $values as $value ) {
			$path .= '&' . $parameter . '=' . rawurlencode( $value );
		}
	}
	return $path;
}

/**
 * Reads from the service, at most every five minutes. While the service is down, returns a copy of the last day.
 *
 * @param array $shape Of the `data`.
 * @return array|WP_Error The body of the response.
 */
function read( string $path, array $shape, array $query = array() ) {
	$settings = settings();
	if ( '' === $settings['key'] ) {
		return new WP_Error( 'not_set_up', __( 'Enter the key in Settings → Partner directory.', 'partner-directory' ) );
	}
	$path = target( $path, $query );
	$name = OPTION . '_' . wp_hash( $settings['url'] . $settings['key'] . $path ); // Another key may see other content.
	$copy = get_transient( $name );
	// Each attempt stores the copy anew, so the age of the content is not that of the transient.
	if ( ! is_array( $copy ) || time() >= $copy['expires'] ) {
		$error = new WP_Error( 'unreachable', __( 'The service does not answer.', 'partner-directory' ) );
		$copy  = array( 'until' => 0, 'expires' => time() + DAY_IN_SECONDS, 'etag' => '', 'result' => $error );
	}
	if ( time() < $copy['until'] ) {
		return $copy['result'];
	}
	// One visitor waits for the service: meanwhile, and for half a minute after a failure, others get what there is.
	$copy['until'] = time() + 30;
	set_transient( $name, $copy, DAY_IN_SECONDS );
	$result = send( $settings, 'GET', $path, array( 'headers' => array_filter( array( 'If-None-Match' => $copy['etag'] ) ) ), $shape );
	if ( ! is_wp_error( $result ) ) {
		$copy['until']   = time() + 5 * MINUTE_IN_SECONDS;
		$copy['expires'] = time() + DAY_IN_SECONDS;
		if ( 304 !== $result['status'] ) {
			$copy = array( 'etag' => $result['etag'], 'result' => $result['body'] ) + $copy;
		}
	} elseif ( is_wp_error( $copy['result'] ) || in_array( $result->get_error_data()['status'] ?? 0, array( 401, 403 ), true ) ) {
		$copy = array( 'etag' => '', 'result' => $result ) + $copy; // Unlike a failure, a refusal ends the use of the copy.
	} else {
		return $copy['result'];
	}
	set_transient( $name, $copy, DAY_IN_SECONDS );
	return $copy['result'];
}

/** The shortcode `[partner_directory country="DE,FR" industry="travel" limit="12"]`. */
function render_directory( $attributes ): string {
	$attributes = shortcode_atts( array( 'country' => '', 'industry' => '', 'limit' => '12' ), $attributes );
	$query      = array_map( 'wp_parse_list', $attributes );
	$sign       = static function ( string $cursor ) use ( $query ): string {
		return $cursor . '~' . wp_hash( wp_json_encode( $query ) . $cursor );
	};
	// Only signed cursors are sent: with invented ones, strangers could use up the quota of the key.
	$signed = sanitize_text_field( wp_unslash( $_GET['partner_next'] ?? '' ) ); // phpcs:ignore WordPress.Security.NonceVerification
	$cursor = explode( '~', $signed )[0];
	$body   = read( '/public/profiles', array( '*' => CARD ), hash_equals( $sign( $cursor ), $signed ) ? $query + array( 'cursor' => $cursor ) : $query );
	if ( is_wp_error( $body ) ) {
		$text = current_user_can( 'manage_options' ) ? explain( $body ) : __( 'The directory is not available at the moment.', 'partner-directory' );
		return '<p class="partner-directory">' . esc_html( $text ) . '</p>';
	}
	$html = '';
	foreach ( $body['data'] as $profile ) {
		$place = $profile['industry']['name'] . ', ' . $profile['country']['name'];
		$html .= sprintf( '<li><strong>%s</strong> <small>%s</small><br>%s</li>', esc_html( $profile['name'] ), esc_html( $place ), esc_html( $profile['headline'] ) );
	}
	$html = '<ul>' . $html . '</ul>';
	if ( is_string( $body['page']['next_cursor'] ?? null ) ) {
		// The service's Link header names the next page, too, but relative to the URL of the request.
		$next  = add_query_arg( 'partner_next', rawurlencode( $sign( $body['page']['next_cursor'] ) ) );
		$html .= '<a rel="next" href="' . esc_url( $next ) . '">' . esc_html__( 'Next', 'partner-directory' ) . '</a>';
	}
	return '<div class="partner-directory">' . $html . '</div>';
}

/** The block `partner-directory/widget`, whose search has the parameters of its page. */
function render_widget(): string {
	$error = null;
	$body  = static function ( $result ) use ( &$error ) {
		if ( is_wp_error( $result ) ) {
			$error   = $result;
			$invalid = 400 === ( $result->get_error_data()['status'] ?? 0 );
			throw $invalid ? new \DomainException() : new \RuntimeException( 'Partner widget: ' . $result->get_error_code() );
		}
		return $result['body'] ?? $result;
	};
	$read   = static function () use ( $body ) {
		$price = array( 'amount_minor' => 'integer', 'exponent' => 'integer', 'currency' => 'string' );
		$shape = array(
			'partner'    => NAMED,
			'profiles'   => array( '*' => CARD ),
			'countries'  => array( '*' => NAMED + array( 'code' => 'string' ) ),
			'industries' => array( '*' => NAMED + array( 'slug' => 'string' ) ),
			'plans'      => array( '*' => NAMED + array( 'price' => $price, 'interval' => 'string' ) ),
		);
		return $body( read( '/partner-widget', $shape ) )['data'];
	};
	$search = static function ( array $query ) use ( $body ) {
		// Visitors choose the words: copies of all that they search for would fill the database.
		return $body( send( settings(), 'GET', target( '/public/profiles', $query ), array(), array( '*' => CARD ) ) );
	};
	// Without pretty permalinks, a form with the method GET would lose the parameter that names the page.
	wp_parse_str( (string) wp_parse_url( (string) get_permalink(), PHP_URL_QUERY ), $keep );
	$html = \PartnerWidget\draw( wp_unslash( $_GET ), $read, $search, $keep ); // phpcs:ignore WordPress.Security.NonceVerification
	if ( $error && current_user_can( 'manage_options' ) ) {
		$html .= '<p>' . esc_html( explain( $error ) ) . '</p>';
	}
	return '<div ' . get_block_wrapper_attributes() . '>' . $html . '</div>';
}

/** WordPress has locales such as de_DE and de_DE_formal; the service takes language tags such as de-DE. */
function language_tag(): string {
	return implode( '-', array_slice( explode( '_', get_locale() ), 0, 2 ) );
}

/**
 * Sends a signup, and sends it again if the response is lost.
 *
 * @return array|WP_Error As of `send`.
 */
function sign_up( array $fields ) {
	$settings = settings();
	$body     = $fields + array(
		'partner'  => $settings['partner'],
		'locale'   => language_tag(),
		'metadata' => array( 'page' => (string) get_the_ID() ), // Strings only; JSON would keep a number.
	);
	// The same form has the same key: a second click, a reload or a retry does not create a second signup. With a time in
	// the body it would not be the same, and the service refuses a known key with another body.
	$key     = hash_hmac( 'sha256', wp_json_encode( $body ), wp_salt() );
	$passing = array( 'unreachable', 'not_the_service', 'internal', 'store_unavailable', 'overloaded', 'idempotency_conflict' );
	do {
		// With WordPress's 5 seconds, a signup could be stored although the visitor reads that it failed.
		$result = send( $settings, 'POST', '/partner/signups', array( 'timeout' => 10, 'headers' => array( 'Idempotency-Key' => $key ), 'body' => $body ), array( 'id' => 'string' ) );
		$again  = ! isset( $again ) && is_wp_error( $result ) && in_array( $result->get_error_code(), $passing, true );
	} while ( $again );
	return $result;
}

/** The shortcode `[partner_signup]`: a form, which posts to its own page. */
function render_signup(): string {
	$choices = static function ( string $path, string $id, array $query = array() ): array {
		$body = read( $path, array( '*' => NAMED + array( $id => 'string' ) ), $query );
		return is_wp_error( $body ) ? array() : wp_list_pluck( $body['data'], 'name', $id );
	};
	$fields  = array(
		'name'    => array( __( 'Name', 'partner-directory' ), '<input type="text" autocomplete="name" required %s value="%s">' ),
		'email'   => array( __( 'E-mail', 'partner-directory' ), '<input type="email" autocomplete="email" required %s value="%s">' ),
		'company' => array( __( 'Company', 'partner-directory' ), '<input type="text" autocomplete="organization" %s value="%s">' ),
		'country' => array( __( 'Country', 'partner-directory' ), $choices( '/public/countries', 'code', array( 'locale' => language_tag() ) ) ),
		'plan'    => array( __( 'Plan', 'partner-directory' ), $choices( '/public/plans', 'slug' ) ),
		'message' => array( __( 'Message', 'partner-directory' ), '<textarea rows="4" %s>%s</textarea>' ),
	);
	// WordPress uses fields of every form, `name` among them, hence the prefix; and adds slashes, as in O\'Brien.
	$posted = wp_unslash( (array) ( $_POST['partner_signup'] ?? array() ) ); // phpcs:ignore WordPress.Security -- below
	$values = array_map( 'sanitize_textarea_field', array_filter( $posted, 'is_string' ) );
	$errors = array();
	$html   = '';
	if ( $values && ! wp_verify_nonce( $values['nonce'] ?? '', 'partner_signup' ) ) {
		$html = __( 'This form has expired. Please send it again.', 'partner-directory' );
	} elseif ( $values ) {
		$filled = array_filter( array_intersect_key( $values, $fields ), 'strlen' ); // Absent is not the same as empty.
		$result = '' === ( $values['website'] ?? '' ) ? sign_up( $filled ) : array(); // People do not see this field.
		if ( ! is_wp_error( $result ) ) {
			return '<p class="partner-signup" role="status">' . esc_html__( 'Thank you. We have received your signup.', 'partner-directory' ) . '</p>';
		}
		$errors = $result->get_error_data()['fields'] ?? array();
		$html   = __( 'Please correct the marked fields.', 'partner-directory' );
		if ( ! array_intersect_key( $errors, $fields ) ) {
			$html = current_user_can( 'manage_options' ) ? explain( $result ) : __( 'Your signup could not be sent. Please try again in a minute.', 'partner-directory' );
		}
	}
	$html = '' === $html ? '' : '<p role="alert">' . esc_html( $html ) . '</p>';
	foreach ( $fields as $name => list( $label, $input ) ) {
		if ( array() === $input ) {
			continue; // Without these choices, the form still works.
		}
		$id         = "partner-signup-$name";
		$value      = $values[ $name ] ?? '';
		$attributes = "id='$id' name='partner_signup[$name]'" . ( isset( $errors[ $name ] ) ? " aria-invalid='true' aria-describedby='$id-error'" : '' );
		if ( is_array( $input ) ) {
			$control = "<select $attributes><option></option>";
			foreach ( $input as $choice => $text ) {
				$control .= '<option value="' . esc_attr( $choice ) . '"' . selected( $value, $choice, false ) . '>' . esc_html( $text ) . '</option>';
			}
			$control .= '</select>';
		} else {
			$control = sprintf( $input, $attributes, esc_textarea( $value ) );
		}
		$error = isset( $errors[ $name ] ) ? "<br><strong id='$id-error'>" . esc_html( $label . ' ' . $errors[ $name ] ) . '.</strong>' : '';
		$html .= "<p><label for='$id'>" . esc_html( $label ) . "</label><br>$control$error</p>";
	}
	$html .= '<input name="partner_signup[website]" tabindex="-1" autocomplete="off" aria-hidden="true" style="position:absolute;left:-99em">';
	$html .= '<input type="hidden" name="partner_signup[nonce]" value="' . esc_attr( wp_create_nonce( 'partner_signup' ) ) . '">';
	return '<form method="post" class="partner-signup">' . $html . '<button>' . esc_html__( 'Sign up', 'partner-directory' ) . '</button></form>';
}

/** Removes the settings, the key with them, and all copies. */
function uninstall(): void {
	global $wpdb;
	// Each site of a network has its own settings.
	foreach ( is_multisite() ? get_sites( array( 'fields' => 'ids', 'number' => 0 ) ) : array( 0 ) as $site ) {
		$site && switch_to_blog( $site );
		delete_option( OPTION );
		$wpdb->query( "DELETE FROM $wpdb->options WHERE option_name REGEXP '^_transient_(timeout_)?partner_directory_'" ); // phpcs:ignore WordPress.DB
		$site && restore_current_blog();
	}
}

add_shortcode( 'partner_directory', __NAMESPACE__ . '\render_directory' );
add_shortcode( 'partner_signup', __NAMESPACE__ . '\render_signup' );
add_action(
	'init',
	static function () {
		$editor = array( 'wp-block-editor', 'wp-blocks', 'wp-components', 'wp-element', 'wp-server-side-render' );
		wp_register_script( 'partner-directory-block', plugins_url( 'block.js', __FILE__ ), $editor, '1.0.0', true );
		wp_register_script( 'partner-directory-widget', plugins_url( 'partner-widget.js', __FILE__ ), array(), '1.0.0', true );
		register_block_type( __DIR__, array( 'render_callback' => __NAMESPACE__ . '\render_widget' ) );
	}
);
add_action(
	'admin_menu',
	static function () {
		$title = __( 'Partner directory', 'partner-directory' );
		add_options_page( $title, $title, 'manage_options', OPTION, __NAMESPACE__ . '\render_settings' );
	}
);
add_action(
	'admin_init',
	static function () {
		// Not autoloaded: options that every page loads end up in object caches and in what debugging plugins show.
		add_option( OPTION, array(), '', false );
		register_setting( OPTION, OPTION, array( 'sanitize_callback' => __NAMESPACE__ . '\verify_settings' ) );
	}
);
register_activation_hook(
	__FILE__,
	static function () {
		// Plugins of a network are deleted on its main site, which may not use this one.
		is_multisite() && switch_to_blog( get_main_site_id() );
		register_uninstall_hook( __FILE__, __NAMESPACE__ . '\uninstall' );
		is_multisite() && restore_current_blog();
	}
);
