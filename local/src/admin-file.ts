import { writeAtomically } from "./files.ts";
import type { PlatformParts } from "./platform-parts.ts";
import { baseUrlOf, dnsServerOf, inferenceUrlOf } from "./platform-children.ts";

/** Tells clients where the installation is and how to get in. */
export function writeAdminFile(parts: PlatformParts): void {
  const { layout, installation, secrets } = parts;
  const { organization: _, ...credentials } = secrets.bootstrap;
  const admin = {
    base_url: baseUrlOf(installation),
    grpc_url: baseUrlOf(installation),
    inference_url: inferenceUrlOf(installation),
    ...credentials,
    ca_file: layout.authority,
    dns_server: dnsServerOf(parts),
  };
  writeAtomically(layout.admin, `${JSON.stringify(admin, null, 2)}\n`, 0o600);
}
