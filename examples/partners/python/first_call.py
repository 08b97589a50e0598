import os
from partner_api import PartnerApi

api = PartnerApi(os.environ["PARTNER_API_URL"], os.environ["PARTNER_API_KEY"], "demo")
for profile in api.profiles(country="DE"):
    print(profile["name"])
