import fc from "fast-check";
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import {
  CreateManagedServiceRequestSchema,
  ManagedServiceSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { UpdateConfigurationRequestSchema } from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import { CreateMetricsExportRequestSchema } from "@holdfast/proto/holdfast/v1/metrics_export_pb.ts";
import { ListOperationsResponseSchema, OperationStatus } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { type EnqueueMessagesRequest, EnqueueMessagesRequestSchema } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { describe, expect, test } from "vitest";
import { createDecoders } from "./decode.ts";
import { createEncoders } from "./encode.ts";
import { createFaults } from "./faults.ts";
import { canonicalText, type JsonObject, plainValue } from "./json-node.ts";
import { inlineValues, JsonSyntaxError, maxValues, parseJson } from "./parse-json.ts";

const decoders = createDecoders();
const encoders = createEncoders();

function decode(message: DescMessage, text: string): { value: Message; faults: string[] } {
  const faults = createFaults();
  const value = decoders.object(message, message.fields)(parseJson(text) as JsonObject, undefined, faults, text);
  return { value, faults: faults.list.map((fault) => `${fault.field} ${fault.code}`) };
}

describe("parseJson", () => {
  test("refuses a text with too many values", () => {
    const list = (count: number) => `[${"0,".repeat(count - 1)}0]`;
    for (const most of [inlineValues, maxValues]) {
      expect(plainValue(parseJson(list(most - 1), most))).toHaveLength(most - 1);
      expect(() => parseJson(list(most), most)).toThrow(`more than ${most} values`);
    }
  });

  test("reads what JSON.parse reads, and nothing else", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(plainValue(parseJson(text))).toEqual(JSON.parse(text));
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...Array.from('{}[]":,0-1.eE+truefalsn \\u\n')) }), (text) => {
        let expected: unknown = JsonSyntaxError;
        try {
          expected = JSON.parse(text);
        } catch (error) {
          expect(error).toBeInstanceOf(SyntaxError);
        }
        if (expected === JsonSyntaxError) expect(() => parseJson(text)).toThrow(JsonSyntaxError);
        else expect(plainValue(parseJson(text))).toEqual(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  test("an error has line and column", () => {
    expect(() => parseJson('{\n  "a": tru\n}')).toThrow('unexpected "t" at line 2, column 8');
    expect(() => parseJson('{"a"')).toThrow("unexpected end at line 1, column 5");
    expect(() => parseJson("[".repeat(70))).toThrow("nesting deeper than 64");
  });

  test("one canonical text for all spellings of a value", () => {
    const texts = ['{"a":1,"b":[true,null]}', '{ "b" : [ true , null ] , "\\u0061" : 1 }'];
    expect(new Set(texts.map((text) => canonicalText(parseJson(text)))).size).toBe(1);
    expect(canonicalText(parseJson('{"a":1.0}'))).not.toBe(canonicalText(parseJson('{"a":1}')));
  });
});

describe("decoding", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  const cases: [text: string, faults: string[]][] = [
    ['{"storage_size_gb": 10}',                  []],
    ['{"storage_size_gb": 1e1}',                 []],
    ['{"storage_size_gb": 10.5}',                ["storage_size_gb wrong_type"]],
    ['{"storage_size_gb": "10"}',                ["storage_size_gb wrong_type"]],
    ['{"storage_size_gb": 2147483648}',          ["storage_size_gb out_of_range"]],
    ['{"storage_size_gb": 1e999}',               ["storage_size_gb wrong_type"]],
    ['{"storage_size_gb": true}',                ["storage_size_gb wrong_type"]],
    ['{"storage_size_gb": null}',                ["storage_size_gb null_not_allowed"]],
    ['{"storageSizeGb": 10}',                    ["storageSizeGb unknown_field"]],
    ['{"name": "a", "name": "a"}',               ["name duplicate_key"]],
    ['{"name": "a\\u0000"}',                     ["name invalid_text"]],
    ['{"name": "\\ud800"}',                      ["name invalid_text"]],
    ['{"deletion_protection": "true"}',          ["deletion_protection wrong_type"]],
    ['{"allowed_cidrs": {"values": []}}',        ["allowed_cidrs wrong_type"]],
    ['{"allowed_cidrs": ["a", 1, null]}',        ["allowed_cidrs[1] wrong_type", "allowed_cidrs[2] null_not_allowed"]],
    ['{"tags": []}',                             ["tags wrong_type"]],
    ['{"tags": {"a": 1, "b.c": 2}}',             ["tags.a wrong_type", 'tags["b.c"] wrong_type']],
    ['{"tags": {"a": "1", "a": "2"}}',           ["tags.a duplicate_key"]],
    ['{"tags": {"__proto__": "1"}}',             ["tags.__proto__ invalid_text"]],
    ['{"__proto__": {}}',                        ["__proto__ unknown_field"]],
  ];
  for (const [text, faults] of cases) {
    test(`${text} has ${faults.length === 0 ? "no fault" : faults.join(", ")}`, () => {
      expect(decode(CreateManagedServiceRequestSchema, text).faults).toEqual(faults);
    });
  }

  test("settings by name are a string or null", () => {
    expect(decode(UpdateConfigurationRequestSchema, '{"parameters": {"a": 1, "b": [null]}}').faults).toEqual([
      "parameters.a wrong_type",
      "parameters.b wrong_type",
    ]);
    const { value, faults } = decode(UpdateConfigurationRequestSchema, '{"parameters": {"a": "1", "b": null}}');
    expect(faults).toEqual([]);
    expect(value).toMatchObject({
      parameters: { a: { kind: { case: "stringValue" } }, b: { kind: { case: "nullValue" } } },
    });
  });

  test("JSON without a schema has no number that a double would round", () => {
    const input = (number: string) =>
      decode(CreateMetricsExportRequestSchema, `{"configuration": {"n": [${number}], "text": "12345678901234567890"}}`);
    for (const number of ["0.1", "1e3", "1.10", "-0", "0.30000000000000004", "5e-324", "100000000000000000000"])
      expect(input(number).faults, number).toEqual([]);
    for (const number of ["9007199254740993", "12345678901234567890", "1e400", "1e-400", `1${"0".repeat(2_000)}`])
      expect(input(number).faults, number).toEqual(["configuration.n[0] out_of_range"]);
    const faults = createFaults();
    const text = '{"configuration": {"n": 9007199254740993}}';
    const { fields } = CreateMetricsExportRequestSchema;
    decoders.object(CreateMetricsExportRequestSchema, fields)(parseJson(text) as JsonObject, undefined, faults, text);
    expect(faults.list.map(({ detail }) => detail)).toEqual([
      "9007199254740993 has more digits, or a larger exponent, than a double-precision number: send it as a string",
    ]);
  });

  test("raw JSON is copied unchanged at any depth, both ways", () => {
    const text = '{"messages":[{"payload": {"n":1.50e1,"n":12345678901234567890} },{"payload":{}, "delay_seconds":1}]}';
    const { value, faults } = decode(EnqueueMessagesRequestSchema, text);
    expect(faults).toEqual([]);
    const { messages } = value as EnqueueMessagesRequest;
    expect(messages.map(({ payload }) => Buffer.from(payload).toString())).toEqual([
      '{"n":1.50e1,"n":12345678901234567890}',
      "{}",
    ]);
    const written = encoders(EnqueueMessagesRequestSchema)(value);
    expect(written).toContain('{"payload":{"n":1.50e1,"n":12345678901234567890},"delay_seconds":null}');
  });

  test("enumerations have their JSON names only", () => {
    const statuses = (text: string) => decode(ListOperationsResponseSchema, `{"operations": [{"status": ${text}}]}`);
    expect(statuses('"completed"').value).toMatchObject({ operations: [{ status: OperationStatus.COMPLETED }] });
    for (const text of ['"COMPLETED"', '"OPERATION_STATUS_COMPLETED"', '"OPERATION_STATUS_UNSPECIFIED"', "3"]) {
      expect(statuses(text).faults).toHaveLength(1);
    }
  });

  test("times are RFC 3339 with any offset and come out in UTC", () => {
    // biome-ignore format: a table, aligned so that it reads as one
    const times: [text: string, present: string | undefined][] = [
      ["2030-01-31T12:00:00Z",           "2030-01-31T12:00:00Z"],
      ["2030-01-31T12:00:00.5+01:30",    "2030-01-31T10:30:00.500Z"],
      ["2030-01-31t12:00:00.000001z",    "2030-01-31T12:00:00.000001Z"],
      ["0001-01-01T00:00:00Z",           "0001-01-01T00:00:00Z"],
      ["2028-02-29T00:00:00Z",           "2028-02-29T00:00:00Z"],
      ["2030-02-29T00:00:00Z",           undefined],
      ["2030-01-31 12:00:00Z",           undefined],
      ["2030-01-31T12:00:00",            undefined],
      ["2030-01-31T24:00:00Z",           undefined],
      ["2030-13-01T00:00:00Z",           undefined],
    ];
    for (const [text, present] of times) {
      const { value, faults } = decode(ListOperationsResponseSchema, `{"operations": [{"created_at": "${text}"}]}`);
      if (present === undefined) expect(faults).toEqual(["operations[0].created_at invalid_time"]);
      else expect(JSON.parse(encoders(ListOperationsResponseSchema)(value)).operations[0].created_at).toBe(present);
    }
  });
});

describe("encoding", () => {
  test("encoding and decoding round-trip, and JSON.parse reads the text", () => {
    const text = fc.string({ unit: "grapheme" }).filter((value) => !value.includes("\0"));
    const requests = fc.record(
      {
        name: text,
        storageSizeGb: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
        version: text,
        allowedCidrs: fc.array(text).map((values) => ({ values })),
        tags: fc.dictionary(
          text.filter((key) => key !== "__proto__"),
          text,
        ),
        ttlHours: fc.integer({ min: 0, max: 1000 }),
        deletionProtection: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(requests, (init) => {
        const message = create(CreateManagedServiceRequestSchema, init);
        const encoded = encoders(CreateManagedServiceRequestSchema)(message);
        const present = Object.fromEntries(Object.entries(JSON.parse(encoded)).filter(([, value]) => value !== null));
        const { value, faults } = decode(CreateManagedServiceRequestSchema, JSON.stringify(present));
        expect(faults).toEqual([]);
        expect(value).toEqual(message);
        expect(encoders(CreateManagedServiceRequestSchema)(init)).toBe(encoded);
      }),
    );
  });

  test("an integer that a double cannot represent is an error", () => {
    const encode = encoders(ListOperationsResponseSchema);
    expect(() => encode({ operations: [{ progressPct: 2 ** 60 }] })).toThrow("beyond 2^53-1");
  });

  test("an absent field is null, empty or zero by its kind", () => {
    expect(JSON.parse(encoders(ManagedServiceSchema)({}))).toMatchObject({
      id: "",
      status: null,
      nodes: [],
      tags: {},
      port: 0,
      ttl_hours: null,
      deletion_protection: false,
      operation: null,
    });
  });
});
