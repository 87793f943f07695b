import { describe } from "vitest";
import { liveCases } from "./parameter-walk/live-cases.ts";

describe("second half of the parameters of a running PostgreSQL 17, each at its least value", () =>
  liveCases("17", "least", "second"));
