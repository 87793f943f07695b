import { describe } from "vitest";
import { restartCases } from "./parameter-walk/restart-cases.ts";

describe("each parameter that PostgreSQL 17 reads when it starts", () => restartCases("17"));
