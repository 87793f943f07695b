import { proxySettings } from "@holdfast/common/client-address.ts";
import { integer, list, text } from "@holdfast/common/config.ts";

/** Settings of the registry of images. */
export const registrySettings = {
  installationId: text("HOLDFAST_INSTALLATION_ID", "Id of the installation"),
  listen: list("HOLDFAST_REGISTRY_LISTEN", "Each host:port to listen on", "127.0.0.1:8452"),
  ...proxySettings,
  directory: text(
    "HOLDFAST_REGISTRY_DIR",
    "Directory of the process; only run/ belongs to the user of docker-registry",
  ),
  uid: integer("HOLDFAST_REGISTRY_UID", "User id of docker-registry, which no other program has"),
  imagesDir: text("HOLDFAST_IMAGES_DIR", "Directory of the node images, one of which has docker-registry"),
  objects: text(
    "HOLDFAST_OBJECTS",
    "Store of images: file:// URL of a directory, or s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION; they are below registry/",
  ),
  objectsKeyFile: text(
    "HOLDFAST_OBJECTS_KEY_FILE",
    "File with the credential of an S3 store, JSON with id and secret, or with the secret of the process that serves a directory; registries with the same one accept each other's tokens and uploads",
    "",
  ),
  objectsCa: text(
    "HOLDFAST_OBJECTS_CA",
    "File with the authorities of an S3 store's certificate; empty for the public authorities",
    "",
  ),
  objectsEncryption: text(
    "HOLDFAST_OBJECTS_ENCRYPTION",
    "Additional server-side encryption of an S3 store: AES256, or none for a store without encryption keys",
    "AES256",
  ),
  organizationBytes: integer(
    "HOLDFAST_REGISTRY_ORGANIZATION_BYTES",
    "Maximum size of the images of one organization; layers that several images share count once",
    20 * 1024 ** 3,
  ),
  controllers: list("HOLDFAST_CONTROLLERS", "Agent listeners of the controllers, host:port, which decide about access"),
  identityDirectory: text(
    "HOLDFAST_REGISTRY_IDENTITY_DIR",
    "Directory with key.pem, cert.pem and ca.pem of this process",
  ),
};
