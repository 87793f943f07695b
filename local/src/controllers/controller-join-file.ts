import { lookUp } from "@holdfast/common/look-up.ts";
import type { CertificateWithKey } from "../transport-certificates.ts";
import type { ControllersPlan } from "./controllers-plan.ts";

/** Secrets that all controllers share, each the text of its file. */
export interface ControllerSecrets {
  readonly master_keys: string;
  readonly bootstrap: string;
  readonly history_password: string;
  readonly objects_key: string;
}

/** All that a host needs to become a controller of an installation; its bearer can read every secret of it. */
export interface ControllerJoinFile extends ControllersPlan {
  readonly kind: "controller";
  readonly installation_id: string;
  /** Address of the host, one of `addresses`. */
  readonly address: string;
  /** `existing` if the other members of etcd run already, and have added this one. */
  readonly etcd_state: "new" | "existing";
  readonly secrets: ControllerSecrets;
  /** Authority of the connections to etcd and to the history, PEM. */
  readonly authority: string;
  /** Certificate of the member of etcd. */
  readonly etcd: CertificateWithKey;
  /** Certificate of the controller as a client of etcd. */
  readonly controller: CertificateWithKey;
}

/** Parses a join file. Throws an error that names the missing or invalid field, without its content. */
export function parseControllerJoinFile(text: string): ControllerJoinFile {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
  const file = fieldsOf(parsed, "content");
  if (lookUp(file, "kind") !== "controller")
    throw new Error(
      "it is not the file of a controller, which `holdfast controllers prepare` writes; `holdfast install host` takes the files of `holdfast admin hosts add`",
    );
  const [secrets, etcd, controller] = ["secrets", "etcd", "controller"].map((name) =>
    fieldsOf(lookUp(file, name), name),
  );
  const state = textOf(file, "etcd_state");
  if (state !== "new" && state !== "existing") throw new Error("its etcd_state is neither new nor existing");
  const addresses = lookUp(file, "addresses");
  if (!Array.isArray(addresses) || !addresses.every((each) => typeof each === "string"))
    throw new Error("it has no addresses");
  const address = textOf(file, "address");
  if (!addresses.includes(address)) throw new Error("its address is not one of its addresses");
  return {
    kind: "controller",
    installation_id: textOf(file, "installation_id"),
    address,
    addresses: addresses as string[],
    domain: textOf(file, "domain"),
    history: textOf(file, "history"),
    objects: textOf(file, "objects"),
    etcd_state: state,
    secrets: {
      master_keys: textOf(secrets, "master_keys"),
      bootstrap: textOf(secrets, "bootstrap"),
      history_password: textOf(secrets, "history_password"),
      objects_key: textOf(secrets, "objects_key"),
    },
    authority: textOf(file, "authority"),
    etcd: { certificate: textOf(etcd, "certificate"), key: textOf(etcd, "key") },
    controller: { certificate: textOf(controller, "certificate"), key: textOf(controller, "key") },
  };
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown, name: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`it has no ${name}`);
  return value as Fields;
}

function textOf(fields: Fields = {}, name: string): string {
  const value = lookUp(fields, name);
  if (typeof value !== "string" || value === "") throw new Error(`it has no ${name}`);
  return value;
}
