import { opMsg, opQuery } from "@holdfast/testing/servers/opmsg-message.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { documentsOf, fieldsNamed, textOf } from "./fields.ts";
import { messageBytesMax, opCodes, ProtocolError, writeMessage } from "./message.ts";
import { readRequest } from "./request.ts";

const names = fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 12 }).filter((name) => !name.includes("\0"));
const documents = fc.array(fc.dictionary(names, fc.oneof(fc.integer({ max: 1e9, min: -1e9 }), fc.string())), {
  minLength: 1,
  maxLength: 3,
});

test("any command is read from the message that has it", () => {
  const sequences = fc.array(fc.record({ identifier: names, documents }), { maxLength: 3 });
  fc.assert(
    fc.property(names, documents, sequences, fc.boolean(), fc.boolean(), (name, list, others, last, quiet) => {
      const message = opMsg(
        { [name]: "collection", pipeline: list, $db: "defaultdb" },
        { requestId: 7, flags: quiet ? 2 : 0, sequences: others, commandLast: last },
      );
      const request = readRequest(message);
      // Integer-like names come first in an object of JavaScript.
      expect(request.fields.map((field) => field.name)).toContain(name);
      expect(request.command).toBe(request.fields[0]?.name);
      expect(request.sequences.map(({ identifier }) => identifier)).toEqual(others.map(({ identifier }) => identifier));
      expect(request.isUnacknowledged).toBe(quiet);
      expect(request.header).toMatchObject({ length: message.length, requestId: 7, opCode: opCodes.msg });
      expect(fieldsNamed(request.fields, "$db").map(textOf)).toEqual(["defaultdb"]);
      const stages = fieldsNamed(request.fields, "pipeline").flatMap(documentsOf);
      if (name !== "pipeline")
        expect(stages.map((stage) => stage.length)).toEqual(list.map((d) => Object.keys(d).length));
    }),
  );
});

test("any bytes are a request or a fault of the protocol, and a request never reaches beyond its message", () => {
  const valid = fc
    .tuple(documents, fc.array(fc.record({ identifier: names, documents }), { maxLength: 2 }))
    .map(([list, sequences]) => opMsg({ insert: "c", list }, { sequences }));
  const damaged = fc
    .tuple(valid, fc.array(fc.tuple(fc.nat(300), fc.nat(255)), { maxLength: 4 }), fc.nat(40))
    .map(([message, changes, cut]) => {
      const bytes = Buffer.from(message.subarray(0, Math.max(message.length - cut, 16)));
      for (const [at, value] of changes) if (at >= 16 && at < bytes.length) bytes[at] = value;
      return bytes;
    });
  const arbitrary = fc
    .tuple(fc.constantFrom(opCodes.msg, opCodes.query), fc.uint8Array({ maxLength: 80 }))
    .map(([opCode, body]) => writeMessage({ requestId: 1, responseTo: 0, opCode }, body));
  let faults = 0;
  fc.assert(
    fc.property(fc.oneof(damaged, arbitrary), (message) => {
      try {
        readRequest(message);
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
        faults += 1;
      }
    }),
    { numRuns: 1_000 },
  );
  expect(faults).toBeGreaterThan(100);
});

test("a command by OP_QUERY is read", () => {
  expect(readRequest(opQuery({ isMaster: 1, helloOk: true }))).toMatchObject({ command: "isMaster", sequences: [] });
});

const two = Buffer.concat([opMsg({ ping: 1 }), opMsg({ insert: "c" }).subarray(20)]);

test.each([
  ["two commands", two, /two commands/],
  ["a checksum", opMsg({ ping: 1 }, { flags: 1 }), /flag/],
  ["an unknown flag", opMsg({ ping: 1 }, { flags: 1 << 5 }), /flag/],
  ["no sections", writeMessage({ requestId: 1, responseTo: 0, opCode: opCodes.msg }, Buffer.alloc(4)), /sections/],
  ["an empty command", opMsg({}), /without a name/],
  ["compression", writeMessage({ requestId: 1, responseTo: 0, opCode: 2_012 }, Buffer.alloc(40)), /opcode 2012/],
  ["a section of an unknown kind", Buffer.concat([opMsg({ ping: 1 }), Buffer.from([2, 5, 0, 0, 0, 0])]), /kind 2/],
])("%s is refused", (_, message, reason) => {
  expect(() => readRequest(message)).toThrow(reason);
  expect(message.length).toBeLessThan(messageBytesMax);
});
