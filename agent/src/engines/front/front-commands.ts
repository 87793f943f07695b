import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createAllowedAddresses } from "../addresses.ts";
import { type Front, type FrontList, listsOf, type NextFront } from "./front.ts";

const pollIntervalMs = 20;
const startedWithinMs = 10_000;

/**
 * Replaces the allow-lists of the front's addresses, and ends the sessions that they forbid. Waits for a front that was
 * just started: it may have read the former lists.
 */
export async function applyAllowLists(front: Front, signal: AbortSignal): Promise<void> {
  await untilStarted(front, signal);
  await replaceLists(front, "network", signal);
  await endForbiddenSessions(front, signal);
}

/** Throws the last failure of a front that does not respond within 10 s. */
async function untilStarted(front: Front, signal: AbortSignal): Promise<void> {
  const limit = AbortSignal.timeout(startedWithinMs);
  for (;;) {
    try {
      await sendCommand(front, "show info", signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (limit.aborted || (code !== "ENOENT" && code !== "ECONNREFUSED")) throw error;
      await sleep(pollIntervalMs, undefined, { signal });
    }
  }
}

/** Replaces the lists of certificates' common names; open sessions continue. */
export function applyAllowedCertificates(front: Front, signal: AbortSignal): Promise<void> {
  return replaceLists(front, "certificate", signal);
}

/** Replaces the lists of words in rules for requests; requests that have begun continue. */
export function applyWords(front: Front, signal: AbortSignal): Promise<void> {
  return replaceLists(front, "word", signal);
}

async function replaceLists(front: Front, by: FrontList["by"], signal: AbortSignal): Promise<void> {
  for (const list of listsOf(front)) if (list.by === by) await replaceList(front, list, signal);
}

async function replaceList(front: Front, { file: name, entries: all }: FrontList, signal: AbortSignal): Promise<void> {
  const file = join(front.configDirectory, name);
  const output = await sendCommand(front, `prepare acl ${file}`, signal);
  const version = /New version created: (\d+)/.exec(output)?.[1];
  if (version === undefined) throw new Error(`the front did not accept a new list: ${output.trim()}`);
  for (let at = 0; at < all.length; at += entriesPerLine) {
    const entries = all.slice(at, at + entriesPerLine).map((entry) => `add acl @${version} ${file} ${entry}`);
    await expectNoOutput(front, entries.join("; "), signal);
  }
  await expectNoOutput(front, `commit acl @${version} ${file}`, signal);
}

/** A line of commands must fit into HAProxy's buffer of 16 KiB. */
const entriesPerLine = 32;

/** Ends every session from an address that the allow-list of its listener does not contain, except forwarded ones. */
export async function endForbiddenSessions(front: Front, signal: AbortSignal): Promise<void> {
  const forbidden = await forbiddenSessions(front, signal);
  for (const { id } of forbidden) await sendCommand(front, `shutdown session ${id}`, signal);
}

/**
 * Ends forbidden sessions until none remains. Commands that the engine has not read when their session ends are
 * acknowledged to no client.
 */
export async function untilNoClients(front: Front, signal: AbortSignal): Promise<void> {
  while ((await forbiddenSessions(front, signal)).length > 0) {
    await endForbiddenSessions(front, signal);
    await sleep(pollIntervalMs, undefined, { signal });
  }
}

async function forbiddenSessions(front: Front, signal: AbortSignal): Promise<FrontSession[]> {
  const allowedBy = new Map(
    front.listeners.flatMap((listener) => {
      const { name, allows } = listener;
      // HAProxy does not list the addresses of forwarded clients. The front that forwards them ends their sessions.
      if (allows.by !== "network" || (listener.mode === "pass" && listener.takesClientAddress === true)) return [];
      return [[name, createAllowedAddresses(allows.cidrs)] as const];
    }),
  );
  const sessions = parseSessions(await sendCommand(front, "show sess", signal));
  return sessions.filter(({ listener, source }) => allowedBy.get(listener)?.(source) === false);
}

/** Number of open sessions of a listener. */
export async function countSessions(front: Front, name: string, signal: AbortSignal): Promise<number> {
  const sessions = parseSessions(await sendCommand(front, "show sess", signal));
  return sessions.filter(({ listener }) => listener === name).length;
}

interface FrontSession {
  readonly id: string;
  readonly listener: string;
  /** Address of the client. */
  readonly source: string;
}

/** TCP sessions in the output of `show sess`. */
export function parseSessions(text: string): FrontSession[] {
  return [...text.matchAll(/^(0x[0-9a-f]+): proto=tcp\S* src=(\S+):\d+ fe=(\S+)/gm)].map(
    ([, id = "", source = "", listener = ""]) => ({ id, listener, source: source.replaceAll(/[[\]]/g, "") }),
  );
}

/**
 * Forwards new connections to the next fronts that are in use, and ends connections to others: those to a front that is
 * no longer in use, or that was at another address. Throws if HAProxy refuses the change.
 */
export async function applyNextFronts(front: Front, signal: AbortSignal): Promise<void> {
  for (const [backend, of] of Object.entries(front.backends)) {
    if (!("fronts" in of)) continue;
    // Connections to former fronts end before the first one to another begins.
    const byUse = of.fronts.toSorted((a, b) => Number(a.isInUse) - Number(b.isInUse));
    for (const next of byUse) await applyNextFront(front, backend, next, signal);
  }
}

async function applyNextFront(front: Front, backend: string, next: NextFront, signal: AbortSignal): Promise<void> {
  const before = (await nextFrontStates(front, backend, signal)).get(next.name);
  if (before !== undefined && isApplied(before, next)) return;
  const server = `${backend}/${next.name}`;
  await sendCommand(front, `set server ${server} state maint; shutdown sessions server ${server}`, signal);
  if (!next.isInUse) return;
  const address = "socket" in next.at ? undefined : next.at.address;
  if (address !== undefined)
    await sendCommand(front, `set server ${server} addr ${address.address} port ${address.port}`, signal);
  await sendCommand(front, `set server ${server} state ready`, signal);
  const after = (await nextFrontStates(front, backend, signal)).get(next.name);
  if (after === undefined || !isApplied(after, next)) throw new Error(`the front does not forward to ${server}`);
}

/** Forwards clients to an engine that serves (`HttpCheck`), also after a restart of the front. */
export async function admitClients(front: Front, backend: string, signal: AbortSignal): Promise<void> {
  const output = (await sendCommand(front, `set server ${backend}/${backend} state ready`, signal)).trim();
  if (output !== "") throw new Error(`the front does not forward to ${backend}: ${output}`);
}

interface NextFrontState {
  readonly address: string;
  readonly port: number;
  readonly isInUse: boolean;
}

function isApplied(state: NextFrontState, { at, isInUse }: NextFront): boolean {
  if (!isInUse || !state.isInUse) return isInUse === state.isInUse;
  return "socket" in at || (state.address === at.address.address && state.port === at.address.port);
}

async function nextFrontStates(
  front: Front,
  backend: string,
  signal: AbortSignal,
): Promise<Map<string, NextFrontState>> {
  return parseServers(await sendCommand(front, `show servers state ${backend}`, signal));
}

/** Bits of `srv_admin_state` by which a server gets no connections. The bit 4 only reports its configuration. */
const maintenance = 0x01 | 0x02 | 0x20;

/** Servers by name in the output of `show servers state`. One in maintenance is not in use. */
export function parseServers(text: string): Map<string, NextFrontState> {
  const [, header = "", ...rows] = text.split("\n");
  const columns = header.replace(/^# /, "").split(" ");
  const states = rows.flatMap((row) => {
    const values = row.split(" ");
    const of = (column: string) => values[columns.indexOf(column)] ?? "";
    if (of("srv_name") === "") return [];
    const isInUse = (Number(of("srv_admin_state")) & maintenance) === 0;
    return [[of("srv_name"), { address: of("srv_addr"), port: Number(of("srv_port")), isInUse }] as const];
  });
  return new Map(states);
}

/** Loads the certificate on disk into the front; open sessions continue. */
export async function applyCertificate(front: Front, signal: AbortSignal): Promise<void> {
  const { certificateFile, keyFile } = front;
  const [certificate, key] = await Promise.all([readFile(certificateFile, "utf8"), readFile(keyFile, "utf8")]);
  // An empty line ends the payload.
  const payload = `${certificate}\n${key}`.replaceAll(/\n+/g, "\n").trim();
  const staged = await sendCommand(front, `set ssl cert ${certificateFile} <<\n${payload}\n`, signal);
  if (!/Transaction (created|updated)/.test(staged))
    throw new Error(`the front refused a certificate: ${staged.trim()}`);
  const committed = await sendCommand(front, `commit ssl cert ${certificateFile}`, signal);
  if (!committed.includes("Success")) throw new Error(`the front refused a certificate: ${committed.trim()}`);
}

/**
 * Loads the authorities of clients' certificates into the front, unless it has them already: HAProxy rebuilds all its
 * certificates for each such change, and fails or crashes if one of them was changed at run time too.
 */
export async function applyAuthorities(front: Front, signal: AbortSignal): Promise<void> {
  const files = front.listeners.flatMap(({ allows }) => (allows.by === "certificate" ? [allows.authorityFile] : []));
  for (const file of new Set(files)) await applyAuthority(front, file, signal);
}

async function applyAuthority(front: Front, file: string, signal: AbortSignal): Promise<void> {
  const payload = (await readFile(file, "utf8")).replaceAll(/\n+/g, "\n").trim();
  const listed = await sendCommand(front, `show ssl ca-file ${file}`, signal);
  if (parseAuthorities(listed).join() === fingerprintsOf(payload).join()) return;
  const staged = await sendCommand(front, `set ssl ca-file ${file} <<\n${payload}\n`, signal);
  if (!/[Tt]ransaction (created|updated)/.test(staged))
    throw new Error(`the front refused an authority: ${staged.trim()}`);
  const committed = await sendCommand(front, `commit ssl ca-file ${file}`, signal);
  if (!committed.includes("Success")) throw new Error(`the front refused an authority: ${committed.trim()}`);
}

/** Sorted SHA-1 fingerprints in the output of `show ssl ca-file`. */
export function parseAuthorities(text: string): string[] {
  return [...text.matchAll(/^SHA1 FingerPrint: ([0-9A-F]+)$/gim)].map(([, listed = ""]) => listed.toUpperCase()).sort();
}

function fingerprintsOf(bundle: string): string[] {
  const certificates = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return certificates.map((pem) => new X509Certificate(pem).fingerprint.replaceAll(":", "")).sort();
}

async function expectNoOutput(front: Front, line: string, signal: AbortSignal): Promise<void> {
  const output = (await sendCommand(front, line, signal)).trim();
  if (output !== "") throw new Error(`the front refused its allow-list: ${output}`);
}

/** Sends one command to HAProxy's stats socket and returns its output. */
export function sendCommand(front: Pick<Front, "commandSocket">, line: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: front.commandSocket, signal });
    let output = "";
    socket.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    socket.once("error", reject);
    socket.once("close", () => resolve(output));
    socket.write(`${line}\n`);
  });
}
