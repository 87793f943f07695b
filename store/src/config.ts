import { proxySettings } from "@holdfast/common/client-address.ts";
import { list, text } from "@holdfast/common/config.ts";

/** Settings of the process that serves the objects of a directory. */
export const storeSettings = {
  directory: text("HOLDFAST_STORE_DIR", "Directory of the objects"),
  keyFile: text("HOLDFAST_STORE_KEY_FILE", "File with the secret that controllers sign URLs with"),
  listen: list("HOLDFAST_STORE_LISTEN", "Each host:port to listen on", "127.0.0.1:8449"),
  identityDirectory: text(
    "HOLDFAST_STORE_IDENTITY_DIR",
    "Directory with key.pem and cert.pem, which a controller renews, and with the listeners that the store reports",
  ),
  ...proxySettings,
};
