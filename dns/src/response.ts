import { isIPv4 } from "node:net";
import { type Answer, decode, encode, type OptAnswer } from "dns-packet";
import type { ZoneLookup, Zone } from "./zone.ts";

export interface ResponseOptions {
  readonly transport: "udp" | "tcp";
  /** Addresses of the name servers, published as `ns1.<origin>`. */
  readonly nameServerAddresses: readonly string[];
}

/** UDP payload size: large enough for every response here, small enough for every network path (DNS flag day 2020). */
const ednsBytes = 1232;
const plainUdpBytes = 512;
const tcpBytes = 65_535;
/** TTL of negative responses. It is short, because clients query a new name before it exists. */
const negativeTtlS = 1;
const apexTtlS = 60;

const rcode = { noError: 0, formErr: 1, servFail: 2, nxDomain: 3, notImp: 4, refused: 5 } as const;
const badVersion = 1;
const types = { A: 1, NS: 2, SOA: 6, AAAA: 28, IXFR: 251, AXFR: 252, ANY: 255 } as const;
const flags = { response: 0x8000, authoritative: 0x0400, truncated: 0x0200, recursionDesired: 0x0100 } as const;

interface Reply {
  readonly rcode: number;
  readonly authoritative: boolean;
  readonly answers: Answer[];
  readonly authorities: Answer[];
  readonly additionals: Answer[];
}

/**
 * Responds to one query from the zone: authoritative only, without recursion. Undefined for packets that get no
 * response: responses, and packets too short for an id. Never throws, for any bytes.
 */
export function respondTo(query: Buffer, zone: Zone, options: ResponseOptions): Buffer | undefined {
  if (query.byteLength < 12) return undefined;
  const bits = query.readUInt16BE(2);
  if ((bits & flags.response) !== 0) return undefined;
  const opcode = (bits >> 11) & 0xf;
  if (opcode !== 0) return headerOnly(query, rcode.notImp);
  const question = query.readUInt16BE(4) === 1 ? readQuestion(query) : undefined;
  if (question === undefined) return headerOnly(query, rcode.formErr);
  const edns = readEdns(query);
  if (edns === "malformed") return headerOnly(query, rcode.formErr, question);
  if (edns !== undefined && edns.ednsVersion !== 0) {
    return write(query, question, reply(rcode.noError), edns, options, badVersion);
  }
  return write(query, question, resolve(question, zone, options), edns, options);
}

/** The OPT record of the query (RFC 6891). */
function readEdns(query: Buffer): OptAnswer | undefined | "malformed" {
  if (query.readUInt16BE(10) === 0) return undefined;
  try {
    const found = (decode(query).additionals ?? []).filter((each) => each.type === "OPT");
    return found.length > 1 ? "malformed" : (found[0] as OptAnswer | undefined);
  } catch {
    return "malformed";
  }
}

function resolve(question: Question, zone: Zone, options: ResponseOptions): Reply {
  const { type } = question;
  if (question.class !== 1 && question.class !== 255) return reply(rcode.refused);
  if (type === types.AXFR || type === types.IXFR) return reply(rcode.refused);
  if (zone.origin === "") return reply(rcode.servFail);
  const queryName = question.name;
  // A name that is not ASCII is not in this zone.
  if (queryName === undefined) return reply(rcode.refused);
  const name = queryName.toLowerCase();
  const found = name === `ns1.${zone.origin}` ? nameServer(zone, options) : zone.find(name);
  if (found.kind === "outside") return reply(rcode.refused);
  if (found.kind === "apex") return apex(queryName, type, zone, options);
  if (found.kind === "none")
    return { ...reply(rcode.nxDomain), authoritative: true, authorities: [soa(zone, negativeTtlS)] };
  const answers =
    found.kind === "records" ? answersOf(queryName, type, found.records.addresses, found.records.ttlS) : [];
  const authorities = answers.length === 0 ? [soa(zone, negativeTtlS)] : [];
  return { ...reply(rcode.noError), authoritative: true, answers, authorities };
}

function nameServer(zone: Zone, { nameServerAddresses: addresses }: ResponseOptions): ZoneLookup {
  const name = `ns1.${zone.origin}`;
  return addresses.length === 0 ? { kind: "empty" } : { kind: "records", records: { name, addresses, ttlS: apexTtlS } };
}

function answersOf(name: string, type: number, addresses: readonly string[], ttl: number): Answer[] {
  // A minimal response to ANY (RFC 8482), useless for amplification.
  if (type === types.ANY) return [{ type: "HINFO", name, ttl, data: { cpu: "RFC8482", os: "" } }];
  if (type !== types.A && type !== types.AAAA) return [];
  return addresses
    .filter((address) => isIPv4(address) === (type === types.A))
    .map((data) => ({ type: isIPv4(data) ? "A" : "AAAA", name, ttl, data }));
}

function apex(queryName: string, type: number, zone: Zone, options: ResponseOptions): Reply {
  const ns: Answer = { type: "NS", name: queryName, ttl: apexTtlS, data: `ns1.${zone.origin}` };
  const soaRecord = { ...soa(zone, apexTtlS), name: queryName };
  const glue = options.nameServerAddresses.map(
    (data): Answer => ({
      type: isIPv4(data) ? "A" : "AAAA",
      name: `ns1.${zone.origin}`,
      ttl: apexTtlS,
      data,
    }),
  );
  const base = { ...reply(rcode.noError), authoritative: true };
  if (type === types.SOA || type === types.ANY) return { ...base, answers: [soaRecord] };
  if (type === types.NS) return { ...base, answers: [ns], additionals: glue };
  return { ...base, authorities: [soa(zone, negativeTtlS)] };
}

function soa(zone: Zone, ttl: number): Answer {
  const { origin, revision } = zone;
  const data = {
    mname: `ns1.${origin}`,
    rname: `hostmaster.${origin}`,
    serial: Number(revision & 0xffff_ffffn),
    refresh: 3600,
    retry: 600,
    expire: 604_800,
    minimum: negativeTtlS,
  };
  return { type: "SOA", name: origin, ttl, data };
}

function reply(code: number): Reply {
  return { rcode: code, authoritative: false, answers: [], authorities: [], additionals: [] };
}

/** A response with header and question only; the question is copied unchanged. */
function headerOnly(query: Buffer, code: number, question?: Question): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(query.readUInt16BE(0), 0);
  header.writeUInt16BE(flags.response | (query.readUInt16BE(2) & (0x7800 | flags.recursionDesired)) | code, 2);
  header.writeUInt16BE(question === undefined ? 0 : 1, 4);
  return question === undefined ? header : Buffer.concat([header, question.bytes]);
}

function write(
  query: Buffer,
  question: Question,
  content: Reply,
  edns: OptAnswer | undefined,
  { transport }: ResponseOptions,
  extendedRcode = 0,
): Buffer {
  const opt: Answer[] =
    edns === undefined
      ? []
      : [
          {
            type: "OPT",
            name: ".",
            udpPayloadSize: ednsBytes,
            extendedRcode,
            ednsVersion: 0,
            flags: 0,
            flag_do: false,
            options: [],
          },
        ];
  const complete = assemble(query, question, content, opt);
  const limit = transport === "tcp" ? tcpBytes : udpLimit(edns);
  if (complete.byteLength <= limit) return complete;
  const truncatedReply = assemble(query, question, { ...content, answers: [], authorities: [], additionals: [] }, opt);
  truncatedReply.writeUInt16BE(truncatedReply.readUInt16BE(2) | flags.truncated, 2);
  return truncatedReply;
}

function udpLimit(edns: OptAnswer | undefined): number {
  if (edns === undefined) return plainUdpBytes;
  return Math.min(Math.max(edns.udpPayloadSize, plainUdpBytes), ednsBytes);
}

/**
 * The library encodes the sections; the question is copied from the query. Names are not compressed, so no offset
 * changes.
 */
function assemble(query: Buffer, question: Question, content: Reply, opt: Answer[]): Buffer {
  const { answers, authorities } = content;
  const sections = encode({ type: "response", answers, authorities, additionals: [...content.additionals, ...opt] });
  const header = sections.subarray(0, 12);
  header.writeUInt16BE(query.readUInt16BE(0), 0);
  const bits = flags.response | (content.authoritative ? flags.authoritative : 0) | content.rcode;
  header.writeUInt16BE(bits | (query.readUInt16BE(2) & flags.recursionDesired), 2);
  header.writeUInt16BE(1, 4);
  return Buffer.concat([header, question.bytes, sections.subarray(12)]);
}

/** The question of a query, parsed by hand so that it can be returned byte for byte. */
interface Question {
  /** Name in the client's letter case; undefined if a label is not plain ASCII. */
  readonly name: string | undefined;
  readonly type: number;
  readonly class: number;
  /** Bytes of the question section, which preserve the client's letter case (DNS 0x20). */
  readonly bytes: Buffer;
}

const headerBytes = 12;

/** Parses the only question after the header. Undefined if it is malformed (RFC 1035 section 4.1.2). */
function readQuestion(query: Buffer): Question | undefined {
  const labels: string[] = [];
  let plain = true;
  let at = headerBytes;
  for (;;) {
    const length = query[at];
    // A compression pointer is invalid in the first name of a packet.
    if (length === undefined || length > 63) return undefined;
    at += 1;
    if (length === 0) break;
    const label = query.subarray(at, at + length);
    if (label.byteLength < length || at + length - headerBytes > 254) return undefined;
    if (!isPlain(label)) plain = false;
    labels.push(label.toString("latin1"));
    at += length;
  }
  if (at + 4 > query.byteLength) return undefined;
  return {
    name: plain ? labels.join(".") : undefined,
    type: query.readUInt16BE(at),
    class: query.readUInt16BE(at + 2),
    bytes: query.subarray(headerBytes, at + 4),
  };
}

/** True if the label is printable ASCII without dots and backslashes. */
function isPlain(label: Buffer): boolean {
  return label.every((byte) => byte > 0x20 && byte < 0x7f && byte !== 0x2e && byte !== 0x5c);
}
