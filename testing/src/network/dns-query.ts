import { createSocket } from "node:dgram";
import { connect } from "node:net";
import dnsPacket, { type DecodedPacket, type OptAnswer, type Packet, type RecordType } from "dns-packet";

export interface DnsQuestion {
  readonly name: string;
  readonly type?: RecordType;
  readonly transport?: "udp" | "tcp";
  /** UDP payload size that the query announces (EDNS). */
  readonly udpPayloadSize?: number;
  readonly recursionDesired?: boolean;
}

const timeoutMs = 10_000;
/** A packet may arrive before its server listens. */
const retryMs = 1_000;

/** Queries only this server; throws if it does not respond in 10 s. */
export async function queryDns(server: string, question: DnsQuestion): Promise<DecodedPacket> {
  const { name, type = "A", transport = "udp", udpPayloadSize, recursionDesired = false } = question;
  const packet: Packet = {
    type: "query",
    id: 1 + Math.floor(Math.random() * 65_534),
    flags: recursionDesired ? dnsPacket.RECURSION_DESIRED : 0,
    questions: [{ type, name }],
    ...(udpPayloadSize === undefined ? {} : { additionals: [optionsRecord(udpPayloadSize)] }),
  };
  const colon = server.lastIndexOf(":");
  const address = { host: server.slice(0, colon), port: Number(server.slice(colon + 1)) };
  return transport === "udp" ? askByUdp(address, packet) : askByTcp(address, packet);
}

/** Addresses of a name; empty when there is none. Throws for any other `rcode`. */
export async function resolveName(server: string, name: string): Promise<string[]> {
  const { answers, rcode } = (await queryDns(server, { name })) as DecodedPacket & { rcode: string };
  if (rcode !== "NOERROR" && rcode !== "NXDOMAIN") throw new Error(`${server} returned ${rcode} for ${name}`);
  return (answers ?? []).flatMap((record) => (record.type === "A" ? [record.data] : []));
}

function optionsRecord(udpPayloadSize: number): OptAnswer {
  return {
    type: "OPT",
    name: ".",
    udpPayloadSize,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: 0,
    flag_do: false,
    options: [],
  };
}

function askByUdp(address: { host: string; port: number }, packet: Packet): Promise<DecodedPacket> {
  const socket = createSocket("udp4");
  const send = () => socket.send(dnsPacket.encode(packet), address.port, address.host);
  const retry = setInterval(send, retryMs);
  let timer: NodeJS.Timeout;
  return new Promise<DecodedPacket>((resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer by UDP from port ${address.port}`)), timeoutMs);
    socket.once("error", reject);
    socket.once("message", (message) => resolve(dnsPacket.decode(message)));
    send();
  }).finally(() => {
    clearInterval(retry);
    clearTimeout(timer);
    socket.close();
  });
}

function askByTcp(address: { host: string; port: number }, packet: Packet): Promise<DecodedPacket> {
  const socket = connect({ ...address });
  return new Promise<DecodedPacket>((resolve, reject) => {
    let received = Buffer.alloc(0);
    socket.setTimeout(timeoutMs, () => reject(new Error(`no answer by TCP from port ${address.port}`)));
    socket.once("error", reject);
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
      resolve(dnsPacket.decode(received.subarray(2, 2 + received.readUInt16BE(0))));
    });
    socket.once("connect", () => socket.write(dnsPacket.streamEncode(packet)));
  }).finally(() => socket.destroy());
}
