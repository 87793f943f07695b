import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readEngineFile } from "../../os/engine-file.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import { authorityFile, certificateFile, certificatesDirectory, type DataPath, keyFile, platform } from "./layout.ts";

/**
 * Parties of the connections inside a machine. Each has a certificate that signs itself, and trusts those of the others
 * by itself, so no authority exists whose key could sign another. `server` is the broker at its ports for clients.
 */
const parties = ["server", "front", "agent"] as const;
type Party = (typeof parties)[number];

/** Longer than any machine lives. */
const days = "36500";

/** Subject of a party's certificate, from which the broker derives the name of its principal. */
export const principalOf = (party: Party): string => `${platform}-${party}`;

/** PEM file of a party's key and certificate. */
export const partyFile = (data: DataPath, party: Party): string => join(certificatesDirectory(data), `${party}.pem`);
/** PEM file of a party's certificate alone. */
export const partyCertificate = (data: DataPath, party: Party): string =>
  join(certificatesDirectory(data), `${party}.crt`);
/** Key and certificate by which this member connects to others. */
export const memberFile = (data: DataPath): string => join(certificatesDirectory(data), "member.pem");
/** Certificates that the broker's ports for clients trust. */
export const trustedClients = (data: DataPath): string => join(certificatesDirectory(data), "clients.pem");
/** Certificates that the broker's ports for members trust: that of the agent, and the authority of members. */
export const trustedMembers = (data: DataPath): string => join(certificatesDirectory(data), "members.pem");

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
  for (const party of parties) {
    const [key, certificate] = [join(partial, `${party}.pem`), join(partial, `${party}.crt`)];
    const subject = ["-subj", `/CN=${principalOf(party)}`, "-days", days];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    await run(["openssl", "req", "-x509", ...curve, "-keyout", key, "-out", certificate, ...subject], { signal });
    await run(["tee", "-a", key], { input: await readEngineFile(certificate), signal });
    // The agent is in the engine's group.
    await run(["chmod", "0640", key, certificate], { signal });
  }
  await run(["sync", "--file-system", partial], { signal });
  await run(["mv", partial, directory], { signal });
}

/** Writes the files that follow from the member's certificate of the platform. */
export async function writeMemberFiles(
  { runAsEngine: run }: Pick<EngineDeps, "runAsEngine">,
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  const [key, certificate, authority] = await Promise.all(
    [keyFile(instance), certificateFile(instance), authorityFile(instance)].map((file) => readFile(file, "utf8")),
  );
  const [front, agent] = await Promise.all(
    (["front", "agent"] as const).map((party) => readEngineFile(partyCertificate(instance, party))),
  );
  const files = {
    [memberFile(instance)]: `${key}\n${certificate}`,
    [trustedClients(instance)]: `${front}${agent}`,
    [trustedMembers(instance)]: `${agent}${authority}`,
  };
  for (const [file, content] of Object.entries(files)) {
    const before = existsSync(file) ? await readEngineFile(file) : undefined;
    if (before === content) continue;
    const partial = `${file}.partial`;
    await run(["install", "-m", "0640", "/dev/null", partial], { signal });
    // A failure of a program is logged with its output, and `dd` prints nothing of the key.
    await run(["dd", "status=none", `of=${partial}`], { input: content, signal });
    await run(["mv", partial, file], { signal });
  }
}
