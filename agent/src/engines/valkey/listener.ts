import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createAllowedAddresses } from "../allowed-addresses.ts";
import type { Instance } from "../engine-driver.ts";
import { otherMembers } from "../members.ts";
import { authorityFile, membersFile } from "./replication/peer-way.ts";
import { allowListFile, certificateFile, keyFile, listenerSocket } from "./layout.ts";

const lookEveryMs = 20;

/** Makes the listener judge by the instance's allow-list at once, and ends the sessions that it forbids. */
export async function applyAllowList(instance: Instance, signal: AbortSignal): Promise<void> {
  await replaceList(instance, allowListFile(instance), instance.spec.allowedCidrs, signal);
  await endForbiddenSessions(instance, signal);
}

/** Makes the listener admit exactly the other members by the peer way. */
export async function applyMembers(instance: Instance, signal: AbortSignal): Promise<void> {
  const ids = otherMembers(instance).map(({ nodeId }) => nodeId);
  await replaceList(instance, membersFile(instance), ids, signal);
}

async function replaceList(
  instance: Instance,
  file: string,
  list: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const answer = await order(instance, `prepare acl ${file}`, signal);
  const version = /New version created: (\d+)/.exec(answer)?.[1];
  if (version === undefined) throw new Error(`the listener did not take a new list: ${answer.trim()}`);
  for (let at = 0; at < list.length; at += entriesAtOnce) {
    const entries = list.slice(at, at + entriesAtOnce).map((entry) => `add acl @${version} ${file} ${entry}`);
    await expectSilence(instance, entries.join("; "), signal);
  }
  await expectSilence(instance, `commit acl @${version} ${file}`, signal);
}

/** A line of orders must fit into the listener's buffer of 16 KiB. */
const entriesAtOnce = 32;

/** Ends every session from an address that the list does not have. */
export async function endForbiddenSessions(instance: Instance, signal: AbortSignal): Promise<void> {
  const forbidden = await forbiddenSessions(instance, signal);
  for (const { id } of forbidden) await order(instance, `shutdown session ${id}`, signal);
}

/** Ends forbidden sessions until none is left. What they sent and the engine has yet to read is acknowledged to nobody. */
export async function untilNoClients(instance: Instance, signal: AbortSignal): Promise<void> {
  while ((await forbiddenSessions(instance, signal)).length > 0) {
    await endForbiddenSessions(instance, signal);
    await sleep(lookEveryMs, undefined, { signal });
  }
}

async function forbiddenSessions(instance: Instance, signal: AbortSignal): Promise<{ readonly id: string }[]> {
  const isAllowed = createAllowedAddresses(instance.spec.allowedCidrs);
  const sessions = await order(instance, "show sess", signal);
  return [...sessions.matchAll(/^(0x[0-9a-f]+): proto=tcp\S* src=(\S+):\d+ fe=listener/gm)]
    .map(([, id = "", source = ""]) => ({ id, source: source.replaceAll(/[[\]]/g, "") }))
    .filter(({ source }) => !isAllowed(source));
}

/** Gives the listener the certificate that is on disk now; sessions that are open go on. */
export async function applyCertificate(instance: Instance, signal: AbortSignal): Promise<void> {
  const file = certificateFile(instance);
  const [certificate, key] = await Promise.all([readFile(file, "utf8"), readFile(keyFile(instance), "utf8")]);
  // An empty line ends the order's payload.
  const payload = `${certificate}\n${key}`.replaceAll(/\n+/g, "\n").trim();
  const taken = await order(instance, `set ssl cert ${file} <<\n${payload}\n`, signal);
  if (!/Transaction (created|updated)/.test(taken))
    throw new Error(`the listener refused a certificate: ${taken.trim()}`);
  const committed = await order(instance, `commit ssl cert ${file}`, signal);
  if (!committed.includes("Success")) throw new Error(`the listener refused a certificate: ${committed.trim()}`);
}

/**
 * Gives the listener the authorities that it takes members' certificates from, unless it has them: HAProxy builds all
 * of its certificates anew for each change, and fails or crashes at that once one of them was changed, too.
 */
export async function applyAuthority(instance: Instance, signal: AbortSignal): Promise<void> {
  const file = authorityFile(instance);
  const payload = (await readFile(file, "utf8")).replaceAll(/\n+/g, "\n").trim();
  const shown = await order(instance, `show ssl ca-file ${file}`, signal);
  if (shownAuthorities(shown).join() === fingerprintsOf(payload).join()) return;
  const taken = await order(instance, `set ssl ca-file ${file} <<\n${payload}\n`, signal);
  if (!/[Tt]ransaction (created|updated)/.test(taken))
    throw new Error(`the listener refused an authority: ${taken.trim()}`);
  const committed = await order(instance, `commit ssl ca-file ${file}`, signal);
  if (!committed.includes("Success")) throw new Error(`the listener refused an authority: ${committed.trim()}`);
}

/** Pure: SHA-1 fingerprints, sorted, by which the listener tells its authorities. */
export function shownAuthorities(text: string): string[] {
  return [...text.matchAll(/^SHA1 FingerPrint: ([0-9A-F]+)$/gim)].map(([, shown = ""]) => shown.toUpperCase()).sort();
}

function fingerprintsOf(bundle: string): string[] {
  const certificates = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return certificates.map((pem) => new X509Certificate(pem).fingerprint.replaceAll(":", "")).sort();
}

async function expectSilence(instance: Instance, line: string, signal: AbortSignal): Promise<void> {
  const answer = (await order(instance, line, signal)).trim();
  if (answer !== "") throw new Error(`the listener refused its allow-list: ${answer}`);
}

/** One order to the listener's own socket, with all that it answers. */
function order(instance: Instance, line: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: listenerSocket(instance), signal });
    let answer = "";
    socket.setEncoding("utf8").on("data", (text: string) => {
      answer += text;
    });
    socket.once("error", reject);
    socket.once("close", () => resolve(answer));
    socket.write(`${line}\n`);
  });
}
