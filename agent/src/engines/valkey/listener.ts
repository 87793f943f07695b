import { readFile } from "node:fs/promises";
import { BlockList, connect, isIPv6 } from "node:net";
import type { Instance } from "../engine-driver.ts";
import { allowListFile, certificateFile, keyFile, listenerSocket } from "./layout.ts";

/** Makes the listener judge by the instance's allow-list at once, and ends the sessions that it forbids. */
export async function applyAllowList(instance: Instance, signal: AbortSignal): Promise<void> {
  const file = allowListFile(instance);
  const answer = await order(instance, `prepare acl ${file}`, signal);
  const version = /New version created: (\d+)/.exec(answer)?.[1];
  if (version === undefined) throw new Error(`the listener did not take a new allow-list: ${answer.trim()}`);
  const { allowedCidrs } = instance.spec;
  for (let at = 0; at < allowedCidrs.length; at += entriesAtOnce) {
    const entries = allowedCidrs.slice(at, at + entriesAtOnce).map((cidr) => `add acl @${version} ${file} ${cidr}`);
    await expectSilence(instance, entries.join("; "), signal);
  }
  await expectSilence(instance, `commit acl @${version} ${file}`, signal);
  await endForbiddenSessions(instance, signal);
}

/** A line of orders must fit into the listener's buffer of 16 KiB. */
const entriesAtOnce = 32;

/** Ends every session from an address that the list does not have. */
export async function endForbiddenSessions(instance: Instance, signal: AbortSignal): Promise<void> {
  const allowed = blockListOf(instance.spec.allowedCidrs);
  const sessions = await order(instance, "show sess", signal);
  const forbidden = [...sessions.matchAll(/^(0x[0-9a-f]+): proto=tcp\S* src=(\S+):\d+ fe=listener/gm)]
    .map(([, id = "", source = ""]) => ({ id, source: source.replaceAll(/[[\]]/g, "") }))
    .filter(({ source }) => !allowed.check(source, isIPv6(source) ? "ipv6" : "ipv4"));
  for (const { id } of forbidden) await order(instance, `shutdown session ${id}`, signal);
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

function blockListOf(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", length = ""] = cidr.split("/");
    const family = isIPv6(network) ? "ipv6" : "ipv4";
    list.addSubnet(network, length === "" ? (family === "ipv6" ? 128 : 32) : Number(length), family);
  }
  return list;
}
