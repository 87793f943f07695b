import { describe } from "vitest";
import { schemathesisCases } from "./openapi-conformance/schemathesis-cases.ts";

describe("the API of single engines", () => schemathesisCases("engines"));
