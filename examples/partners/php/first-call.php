<?php
require __DIR__ . '/PartnerApi.php';

$client = new PartnerApi\Client(getenv('PARTNER_API_URL'), getenv('PARTNER_API_KEY'), 'demo');
foreach ($client->profiles(['country' => 'DE']) as $profile) echo $profile['name'], "\n";
