import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { readOrCreate, readOrCreateText } from "./files.ts";

/** First credentials of an installation; the controller creates them in etcd. */
export interface Bootstrap {
  readonly username: string;
  readonly password: string;
  readonly api_key_id: string;
  readonly api_key_secret: string;
  readonly token: string;
  readonly organization: string;
}

export interface Secrets {
  readonly bootstrap: Bootstrap;
  /** Files for the processes: secrets are never in arguments or the environment. */
  readonly bootstrapFile: string;
  readonly masterKeyFile: string;
  readonly historyPassword: string;
  readonly historyPasswordFile: string;
  /** Key with which controllers sign URLs of objects. */
  readonly storeKeyFile: string;
  /** Key of an external object store, from the operator. */
  readonly objectsKeyFile: string;
}

/** All secrets of the installation, created at its first start; each has at least 128 random bits. */
export function openSecrets(keysDir: string): Secrets {
  const bootstrapFile = bootstrapFileIn(keysDir);
  const masterKeyFile = masterKeyFileIn(keysDir);
  const historyPasswordFile = historyPasswordFileIn(keysDir);
  const storeKeyFile = join(keysDir, "store-key");
  const { bootstrap, historyPassword } = openControllerSecrets(keysDir);
  readOrCreateText(storeKeyFile, 0o600, () => random(32));
  return {
    objectsKeyFile: objectsKeyFileIn(keysDir),
    storeKeyFile,
    bootstrap,
    bootstrapFile,
    masterKeyFile,
    historyPassword,
    historyPasswordFile,
  };
}

/** The secrets that all controllers of an installation share, created at the first call. */
export function openControllerSecrets(keysDir: string): Pick<Secrets, "bootstrap" | "historyPassword"> {
  const bootstrap = readOrCreate<Bootstrap>(bootstrapFileIn(keysDir), 0o600, () => ({
    username: "admin",
    password: random(24),
    api_key_id: `hfk_${random(9)}`,
    api_key_secret: random(32),
    token: `hft_${random(32)}`,
    organization: "default",
  }));
  const newMasterKeys = () => ({ current: "v1", keys: { v1: randomBytes(32).toString("base64") } });
  readOrCreate(masterKeyFileIn(keysDir), 0o600, newMasterKeys);
  return { bootstrap, historyPassword: readOrCreateText(historyPasswordFileIn(keysDir), 0o600, () => random(24)) };
}

/** Path of the first credentials. */
export function bootstrapFileIn(keysDir: string): string {
  return join(keysDir, "bootstrap.json");
}

export function masterKeyFileIn(keysDir: string): string {
  return join(keysDir, "master-key.json");
}

export function historyPasswordFileIn(keysDir: string): string {
  return join(keysDir, "history-password");
}

export function objectsKeyFileIn(keysDir: string): string {
  return join(keysDir, "objects-key.json");
}

function random(bytes: number): string {
  return randomBytes(bytes).toString("base64url");
}
