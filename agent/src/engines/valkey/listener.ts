import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createAllowedAddresses } from "../addresses.ts";
import type { Instance } from "../engine-driver.ts";
import { otherMembers } from "../members.ts";
import { authorityFile, membersFile } from "./replication/peer-port.ts";
import { allowListFile, certificateFile, keyFile, listenerSocket } from "./layout.ts";

const pollIntervalMs = 20;

/** Replaces the listener's allow-list at once, and ends the sessions that it forbids. */
export async function applyAllowList(instance: Instance, signal: AbortSignal): Promise<void> {
  await replaceList(instance, allowListFile(instance), instance.spec.allowedCidrs, signal);
  await endForbiddenSessions(instance, signal);
}

/** Replaces the listener's list of members that may connect to the peer port. */
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
  const output = await sendCommand(instance, `prepare acl ${file}`, signal);
  const version = /New version created: (\d+)/.exec(output)?.[1];
  if (version === undefined) throw new Error(`the listener did not accept a new list: ${output.trim()}`);
  for (let at = 0; at < list.length; at += entriesPerLine) {
    const entries = list.slice(at, at + entriesPerLine).map((entry) => `add acl @${version} ${file} ${entry}`);
    await expectNoOutput(instance, entries.join("; "), signal);
  }
  await expectNoOutput(instance, `commit acl @${version} ${file}`, signal);
}

/** A line of commands must fit into HAProxy's buffer of 16 KiB. */
const entriesPerLine = 32;

/** Ends every session from an address that the allow-list does not contain. */
export async function endForbiddenSessions(instance: Instance, signal: AbortSignal): Promise<void> {
  const forbidden = await forbiddenSessions(instance, signal);
  for (const { id } of forbidden) await sendCommand(instance, `shutdown session ${id}`, signal);
}

/**
 * Ends forbidden sessions until none remains. Commands that the engine has not read by then are acknowledged to no
 * client.
 */
export async function untilNoClients(instance: Instance, signal: AbortSignal): Promise<void> {
  while ((await forbiddenSessions(instance, signal)).length > 0) {
    await endForbiddenSessions(instance, signal);
    await sleep(pollIntervalMs, undefined, { signal });
  }
}

async function forbiddenSessions(instance: Instance, signal: AbortSignal): Promise<{ readonly id: string }[]> {
  const isAllowed = createAllowedAddresses(instance.spec.allowedCidrs);
  const sessions = await sendCommand(instance, "show sess", signal);
  return [...sessions.matchAll(/^(0x[0-9a-f]+): proto=tcp\S* src=(\S+):\d+ fe=listener/gm)]
    .map(([, id = "", source = ""]) => ({ id, source: source.replaceAll(/[[\]]/g, "") }))
    .filter(({ source }) => !isAllowed(source));
}

/** Loads the certificate on disk into the listener; open sessions go on. */
export async function applyCertificate(instance: Instance, signal: AbortSignal): Promise<void> {
  const file = certificateFile(instance);
  const [certificate, key] = await Promise.all([readFile(file, "utf8"), readFile(keyFile(instance), "utf8")]);
  // An empty line ends the payload.
  const payload = `${certificate}\n${key}`.replaceAll(/\n+/g, "\n").trim();
  const staged = await sendCommand(instance, `set ssl cert ${file} <<\n${payload}\n`, signal);
  if (!/Transaction (created|updated)/.test(staged))
    throw new Error(`the listener refused a certificate: ${staged.trim()}`);
  const committed = await sendCommand(instance, `commit ssl cert ${file}`, signal);
  if (!committed.includes("Success")) throw new Error(`the listener refused a certificate: ${committed.trim()}`);
}

/**
 * Loads the authorities of members' certificates into the listener, unless it has them already: HAProxy rebuilds all
 * its certificates for each such change, and fails or crashes if one of them was changed at run time too.
 */
export async function applyAuthority(instance: Instance, signal: AbortSignal): Promise<void> {
  const file = authorityFile(instance);
  const payload = (await readFile(file, "utf8")).replaceAll(/\n+/g, "\n").trim();
  const listed = await sendCommand(instance, `show ssl ca-file ${file}`, signal);
  if (listedAuthorities(listed).join() === fingerprintsOf(payload).join()) return;
  const staged = await sendCommand(instance, `set ssl ca-file ${file} <<\n${payload}\n`, signal);
  if (!/[Tt]ransaction (created|updated)/.test(staged))
    throw new Error(`the listener refused an authority: ${staged.trim()}`);
  const committed = await sendCommand(instance, `commit ssl ca-file ${file}`, signal);
  if (!committed.includes("Success")) throw new Error(`the listener refused an authority: ${committed.trim()}`);
}

/** Pure: sorted SHA-1 fingerprints in the output of `show ssl ca-file`. */
export function listedAuthorities(text: string): string[] {
  return [...text.matchAll(/^SHA1 FingerPrint: ([0-9A-F]+)$/gim)].map(([, listed = ""]) => listed.toUpperCase()).sort();
}

function fingerprintsOf(bundle: string): string[] {
  const certificates = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return certificates.map((pem) => new X509Certificate(pem).fingerprint.replaceAll(":", "")).sort();
}

async function expectNoOutput(instance: Instance, line: string, signal: AbortSignal): Promise<void> {
  const output = (await sendCommand(instance, line, signal)).trim();
  if (output !== "") throw new Error(`the listener refused its allow-list: ${output}`);
}

/** Sends one command to HAProxy's stats socket and returns its output. */
function sendCommand(instance: Instance, line: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: listenerSocket(instance), signal });
    let output = "";
    socket.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    socket.once("error", reject);
    socket.once("close", () => resolve(output));
    socket.write(`${line}\n`);
  });
}
