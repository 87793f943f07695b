import fc from "fast-check";
import { endpointOf, endpointText } from "@holdfast/common/endpoint.ts";
import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import {
  newSetupToken,
  newSecretText,
  idOfSecretText,
  userOfSetupToken,
} from "@holdfast/controller/access/credential/credential.ts";
import { canonicalCidrs } from "@holdfast/controller/services/service/network/allowed-cidrs.ts";
import { plainValue } from "@holdfast/gateway/json/json-node.ts";
import { JsonSyntaxError, parseJson, readJson } from "@holdfast/gateway/json/parse-json.ts";
import { formatTimestamp, parseTimestamp } from "@holdfast/gateway/json/timestamp.ts";
import { describe, expect, test } from "vitest";
import { corpus } from "./corpus.ts";

/** `npm run faults -- --hostile` runs twenty times as many. */
const numRuns = 2_000 * Number(process.env["HOLDFAST_TEST_CROWDS"] ?? 1);

/** Almost valid texts: valid ones with a piece removed, doubled, or replaced by a piece of another. */
function nearly(good: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const piece = fc.oneof(fc.constantFrom(...corpus), fc.string({ unit: "binary", maxLength: 4 }));
  return fc
    .tuple(good, piece, fc.nat(), fc.nat(8), fc.constantFrom("keep", "cut", "put", "double"))
    .map(([text, other, where, length, what]) => {
      const at = text.length === 0 ? 0 : where % text.length;
      const [before, after] = [text.slice(0, at), text.slice(at)];
      if (what === "keep") return text;
      if (what === "cut") return before + after.slice(length);
      return before + (what === "put" ? other : after.slice(0, length)) + after;
    });
}

/** Tries the corpus and almost valid texts. */
function tried(good: fc.Arbitrary<string>, property: (text: string) => void): void {
  const examples = corpus.map((text): [string] => [text]);
  fc.assert(fc.property(nearly(good), property), { numRuns, examples });
}

const orNothing = <T>(run: () => T): T | undefined => {
  try {
    return run();
  } catch {
    return undefined;
  }
};

describe("JSON", () => {
  test("accepts the standard's texts, and throws only its own error for others", () => {
    tried(fc.json(), (text) => {
      let node: ReturnType<typeof parseJson> | undefined;
      try {
        node = parseJson(text);
      } catch (error) {
        expect(error).toBeInstanceOf(JsonSyntaxError);
        return;
      }
      // A text that is accepted here is JSON for other parsers too.
      expect(() => JSON.parse(text) as unknown).not.toThrow();
      expect(Object.getPrototypeOf({})).toBe(Object.prototype);
      expect(() => plainValue(node)).not.toThrow();
    });
  });

  test("has the same meaning as in other parsers", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.stringify(plainValue(parseJson(text)))).toBe(text);
      }),
      { numRuns },
    );
  });

  test("decodes any bytes to an object or a fault", () => {
    const bytes = fc.oneof(
      fc.uint8Array(),
      nearly(fc.json()).map((text) => new TextEncoder().encode(text)),
    );
    fc.assert(
      fc.property(bytes, (body) => {
        const read = readJson(body, 1_000);
        if ("code" in read) expect(["invalid_json", "invalid_utf8", "wrong_type"]).toContain(read.code);
        else expect(read.value.kind).toBe("object");
      }),
      { numRuns },
    );
  });
});

test("a network is canonical and stable, or is a fault", () => {
  const network = fc.oneof(
    fc.tuple(fc.ipV4(), fc.nat(32)).map(([address, bits]) => `${address}/${bits}`),
    fc.tuple(fc.ipV6(), fc.nat(128)).map(([address, bits]) => `${address}/${bits}`),
  );
  tried(network, (text) => {
    const { cidrs, faults } = canonicalCidrs([text, text]);
    expect([cidrs.length, faults.length]).toEqual(faults.length === 0 ? [1, 0] : [0, 2]);
    expect(canonicalCidrs(cidrs)).toEqual({ cidrs, faults: [] });
  });
});

test("a parsed time survives printing and parsing", () => {
  const date = fc.date({
    min: new Date("0001-01-01T00:00:00Z"),
    max: new Date("9999-12-31T23:59:59Z"),
    noInvalidDate: true,
  });
  const zone = fc.constantFrom("Z", "+00:00", "-23:59", "+23:59", ".5Z", ".123456789+01:00");
  tried(
    fc.tuple(date, zone).map(([at, end]) => at.toISOString().slice(0, 19) + end),
    (text) => {
      const read = parseTimestamp(text);
      if (read === undefined) return;
      const formatted = formatTimestamp(read.seconds, read.nanos);
      expect(parseTimestamp(formatted)).toEqual(read);
    },
  );
});

test("an endpoint has a host and a valid port, or is rejected", () => {
  const endpoint = fc
    .tuple(fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain()), fc.nat(70_000))
    .map(([host, port]) => endpointText(host, port));
  tried(endpoint, (text) => {
    const read = orNothing(() => endpointOf(text));
    if (read === undefined) return;
    expect(read.port).toBeLessThanOrEqual(65_535);
    expect(endpointOf(endpointText(read.host, read.port))).toEqual(read);
  });
});

test("a token contains an id or is invalid, and a setup token a name", () => {
  tried(
    fc.uuid().map((id) => newSecretText("hft_", id)),
    (text) => {
      const id = idOfSecretText("hft_", text);
      if (id !== undefined) expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    },
  );
  tried(fc.string({ maxLength: 64 }).map(newSetupToken), (text) => {
    const name = userOfSetupToken(text);
    if (name !== undefined) expect(name.length).toBeLessThanOrEqual(96);
  });
});

test("every address has at least one source, and addresses of one /64 share it", () => {
  const groups = createSourceGroups(["192.0.2.0/24"]);
  tried(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
    for (const { name, factor } of groups(text)) expect([typeof name, factor > 0]).toEqual(["string", true]);
  });
  const halves = fc.array(fc.nat(0xffff), { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(halves, halves, halves, (network, one, other) => {
      const address = (rest: readonly number[]) => [...network, ...rest].map((each) => each.toString(16)).join(":");
      expect(groups(address(one))).toEqual(groups(address(other)));
    }),
    { numRuns },
  );
});
