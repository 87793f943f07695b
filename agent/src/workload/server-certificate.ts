import { mkdir, readdir, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { IssueServerCertificateRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { EngineCheck } from "../engines/engine-driver.ts";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import { createKeyWithRequest } from "@holdfast/mtls/certificate-request.ts";
import { agentMethods, type ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { expiryOf, pemOf, renewalTime } from "@holdfast/mtls/machine-identity.ts";

/** The engine's server certificate: server.key, server.crt and ca.crt, replaced atomically. */
export interface ServerCertificate {
  /**
   * Issues a certificate if there is none, once two thirds of its lifetime have passed, or if the authorities changed;
   * returns true if the files changed. It waits for a controller only without a valid certificate, and rejects if the
   * controller refuses. With `forMembers`, a certificate that other members do not accept is replaced as soon as a
   * controller is connected.
   */
  ensure(signal: AbortSignal, options?: { readonly forMembers?: boolean }): Promise<boolean>;
  /** Time of the next renewal in milliseconds since 1970; undefined before the first certificate. */
  readonly renewalAt: number | undefined;
  /** Generation of the authorities that issued it; 0 without one. */
  readonly authorityGeneration: number;
  check(): EngineCheck;
}

export interface ServerCertificateDeps {
  /** Path of the symbolic link that the engine's settings name. The target is a directory in the same folder. */
  readonly path: string;
  readonly channel: () => ControllerChannel | undefined;
  readonly connected: (signal: AbortSignal) => Promise<ControllerChannel>;
  /** Generation of the machine's newest authorities. */
  readonly authorityGeneration: () => number;
  readonly now: () => number;
}

interface Facts {
  /** True if the certificate names this member, so that other members accept it. */
  readonly forMembers?: boolean;
  readonly issuedAt: number;
  readonly notAfter: number;
  readonly authorityGeneration: number;
}

const timeoutMs = 10_000;

export function createServerCertificate(deps: ServerCertificateDeps): ServerCertificate {
  const { path, channel, connected, authorityGeneration, now } = deps;
  let facts: Facts | undefined;
  let forMembers = false;
  let refusal = "";

  async function issue(connection: ControllerChannel): Promise<void> {
    const { privateKey, request } = createKeyWithRequest();
    const issuedAt = now();
    const message = create(IssueServerCertificateRequestSchema, { certificateRequest: request, forMembers });
    const response = await connection.unary(agentMethods.issueServerCertificate, message, timeoutMs);
    const issued: Facts = {
      forMembers,
      issuedAt,
      notAfter: expiryOf(response),
      authorityGeneration: Number(response.authorityGeneration),
    };
    await swap([
      ["server.key", privateKey],
      ["server.crt", pemOf(response.chain)],
      ["ca.crt", response.trustBundle],
      ["facts.json", JSON.stringify(issued)],
    ]);
    facts = issued;
  }

  /** The link is switched once all files exist, so key and certificate always match. */
  async function swap(files: readonly (readonly [name: string, content: string])[]): Promise<void> {
    const home = dirname(path);
    const target = `tls-${now()}`;
    await mkdir(join(home, target), { recursive: true, mode: 0o750 });
    await Promise.all(files.map(([name, content]) => writeDurably(join(home, target, name), content, 0o640)));
    await rm(`${path}.new`, { force: true });
    await symlink(target, `${path}.new`);
    await rename(`${path}.new`, path);
    const old = (await readdir(home)).filter((name) => /^tls-\d+$/.test(name) && name !== target);
    for (const name of old) await rm(join(home, name), { recursive: true });
  }

  const dueAt = (of: Facts) =>
    of.authorityGeneration < authorityGeneration() || (forMembers && of.forMembers !== true) ? 0 : renewalTime(of);

  return {
    get renewalAt() {
      return facts && dueAt(facts);
    },
    get authorityGeneration() {
      return facts?.authorityGeneration ?? 0;
    },
    async ensure(signal, options = {}) {
      forMembers = options.forMembers ?? false;
      if (facts === undefined) {
        const stored = await readIfExists(join(path, "facts.json"));
        if (stored !== undefined) facts = JSON.parse(stored.toString("utf8")) as Facts;
      }
      const isValid = facts !== undefined && facts.notAfter > now();
      if (facts !== undefined && isValid && dueAt(facts) > now()) return false;
      const connection = isValid ? channel() : await connected(signal);
      if (connection === undefined) return false;
      try {
        await issue(connection);
        refusal = "";
        return true;
      } catch (error) {
        refusal = (error as Error).message;
        if (!isValid) throw error;
        return false;
      }
    },
    check() {
      const suffix = refusal === "" ? "" : ` (${refusal})`;
      if (facts === undefined)
        return { name: "certificate", status: "unhealthy", reason: `There is no certificate yet${suffix}.` };
      const { issuedAt, notAfter } = facts;
      if (notAfter <= now())
        return { name: "certificate", status: "unhealthy", reason: `The certificate has expired${suffix}.` };
      const isOverdue = now() > issuedAt + ((notAfter - issuedAt) * 5) / 6;
      if (isOverdue)
        return {
          name: "certificate",
          status: "degraded",
          reason: `The certificate expires soon and is not renewed${suffix}.`,
        };
      return { name: "certificate", status: "healthy", reason: "" };
    },
  };
}
