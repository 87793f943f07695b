import { list, text } from "@holdfast/common/config.ts";

/** Settings of the process that obtains the API's certificate. */
export const acmeSettings = {
  email: text(
    "HOLDFAST_ACME_EMAIL",
    "Contact address for the authority, whose terms it accepts; without it the process does not run",
  ),
  directoryUrl: text(
    "HOLDFAST_ACME_DIRECTORY",
    "URL of the authority's ACME directory",
    "https://acme-v02.api.letsencrypt.org/directory",
  ),
  names: list("HOLDFAST_ACME_NAMES", "Names of the certificate besides the advertised one"),
  listen: text("HOLDFAST_ACME_LISTEN", "host:port at which the authority's requests to port 80 arrive", "0.0.0.0:80"),
  stateDirectory: text("HOLDFAST_ACME_STATE_DIR", "Directory of the account's key and the certificate"),
};
