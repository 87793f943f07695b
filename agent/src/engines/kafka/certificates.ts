import { existsSync } from "node:fs";
import { join } from "node:path";
import { readEngineFile } from "../../os/engine-file.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import { certificatesDirectory, type DataPath, platform } from "./layout.ts";

/**
 * Parties of the connections inside a machine. Each has a certificate that signs itself, and trusts those of the others
 * by itself, so no authority exists whose key could sign another. `server` is the broker.
 */
const parties = ["server", "front", "agent"] as const;
type Party = (typeof parties)[number];

const [clientsName, membersName] = ["clients.pem", "members.pem"];
/** The certificates outlive every machine. */
const days = "36500";

/** Subject of a party's certificate, from which the broker derives the name of its principal. */
export const principalOf = (party: Party): string => `${platform}-${party}`;

/** PEM file of a party's key and certificate. */
export const partyFile = (data: DataPath, party: Party): string => join(certificatesDirectory(data), `${party}.pem`);
/** PEM file of a party's certificate alone. */
export const partyCertificate = (data: DataPath, party: Party): string =>
  join(certificatesDirectory(data), `${party}.crt`);
/** Certificates that the broker's ports for clients trust. */
export const trustedClients = (data: DataPath): string => join(certificatesDirectory(data), clientsName);
/** Certificates that the other ports trust: those of the agent and of the broker, which connects to its controller. */
export const trustedMembers = (data: DataPath): string => join(certificatesDirectory(data), membersName);

/** Creates the certificates of all parties, unless they exist. They appear together or not at all. */
export async function createCertificates(
  { runAsEngine: run }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  const directory = certificatesDirectory(instance);
  if (existsSync(directory)) return;
  const partial = `${directory}.partial`;
  await run(["rm", "-rf", partial], { signal });
  await run(["mkdir", "-m", "0750", partial], { signal });
  const certificates: Partial<Record<Party, string>> = {};
  for (const party of parties) {
    const [key, certificate] = [join(partial, `${party}.pem`), join(partial, `${party}.crt`)];
    const subject = ["-subj", `/CN=${principalOf(party)}`, "-days", days];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    await run(["openssl", "req", "-x509", ...curve, "-keyout", key, "-out", certificate, ...subject], { signal });
    // The agent is in the engine's group.
    await run(["chmod", "0640", key, certificate], { signal });
    const pem = await readEngineFile(certificate);
    certificates[party] = pem;
    await run(["tee", "-a", key], { input: pem, signal });
  }
  const { server = "", front = "", agent = "" } = certificates;
  await run(["tee", join(partial, clientsName)], { input: front + agent, signal });
  await run(["tee", join(partial, membersName)], { input: agent + server, signal });
  await run(["sync", "--file-system", partial], { signal });
  await run(["mv", partial, directory], { signal });
}
