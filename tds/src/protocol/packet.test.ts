import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MessageReader, packetHeaderBytes, packetTypes, PacketWriter } from "./packet.ts";
import { ProtocolError } from "./protocol-error.ts";

const limit = (type: number) =>
  type === packetTypes.sqlBatch ? 100_000 : type === packetTypes.attention ? 0 : undefined;

describe("packets", () => {
  test("a message of any size, cut at any points, is read as it was written", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 20_000 }),
        fc.integer({ min: 512, max: 32_767 }),
        fc.array(fc.integer({ min: 1, max: 3_000 }), { maxLength: 20 }),
        (bytes, packetSize, cuts) => {
          const writer = new PacketWriter();
          writer.packetSize = packetSize;
          const half = Math.floor(bytes.length / 2);
          const wire = Buffer.concat([
            writer.write(packetTypes.sqlBatch, Buffer.from(bytes.subarray(0, half)), false),
            writer.write(packetTypes.sqlBatch, Buffer.from(bytes.subarray(half)), true),
          ]);
          const reader = new MessageReader(limit);
          const messages = [];
          let at = 0;
          for (const cut of [...cuts, wire.length]) {
            messages.push(...reader.read(wire.subarray(at, at + cut)));
            at += cut;
          }
          expect(messages.map(({ type, payload }) => [type, [...payload]])).toEqual([[1, [...bytes]]]);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("an empty message is one packet", () => {
    expect(new PacketWriter().write(4, Buffer.alloc(0), true)).toHaveLength(packetHeaderBytes);
  });

  test("random bytes are messages or a protocol error, and memory stays bounded", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 50 }), (chunks) => {
        const reader = new MessageReader(limit);
        try {
          for (const chunk of chunks)
            for (const message of reader.read(Buffer.from(chunk))) expect(message).toBeDefined();
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
    );
  });

  test("a message beyond its limit is refused before it is complete", () => {
    const reader = new MessageReader(limit);
    const packet = Buffer.alloc(30_000);
    packet.writeUInt8(packetTypes.sqlBatch, 0);
    packet.writeUInt16BE(packet.length, 2);
    expect(() => {
      for (let index = 0; index < 5; index += 1) expect([...reader.read(packet)]).toEqual([]);
    }).toThrow("longer than 100000 bytes");
  });

  test("an attention in the middle of a message discards the message", () => {
    const reader = new MessageReader(limit);
    const incomplete = Buffer.from([1, 0, 0, 10, 0, 0, 1, 0, 7, 7]);
    const attention = Buffer.from([6, 1, 0, 8, 0, 0, 1, 0]);
    const next = Buffer.from([1, 1, 0, 9, 0, 0, 1, 0, 9]);
    const messages = [...reader.read(Buffer.concat([incomplete, attention, next]))];
    expect(messages.map(({ type, payload }) => [type, [...payload]])).toEqual([
      [6, []],
      [1, [9]],
    ]);
  });
});
