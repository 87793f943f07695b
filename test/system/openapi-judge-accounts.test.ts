import { describe } from "vitest";
import { judgeShare } from "./openapi-judge/judge-share.ts";

describe("the API of accounts", () => judgeShare("accounts"));
