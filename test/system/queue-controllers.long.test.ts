import { afterAll, beforeAll, describe } from "vitest";
import { floodCases } from "./queues/floods.ts";
import { createQueuesUnderTest } from "./queues/queues-under-test.ts";
import { outageCases } from "./queues/records.ts";
import { twoControllersCases } from "./queues/two-controllers.ts";

describe("queues whose controllers are flooded, killed and stopped", () => {
  const fixture = createQueuesUnderTest();
  beforeAll(() => fixture.start());
  afterAll(fixture.remove);

  floodCases(fixture);
  twoControllersCases(fixture);
  outageCases(fixture);
});
