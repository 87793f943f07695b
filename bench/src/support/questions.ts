type Answers = Readonly<Record<string, (question: never) => Promise<unknown>>>;

/** Answers what the parent asks: `{ask: name, ...}`; besides the given names also `usage`, after a collection of garbage. */
export function answerQuestions(answers: Answers): void {
  process.once("disconnect", () => process.exit());
  process.on("message", (question: { ask: string }) => {
    const answer = question.ask === "usage" ? usage() : answers[question.ask]?.(question as never);
    void answer?.then((value) => process.send?.(value ?? null));
  });
}

export interface Usage {
  readonly rssBytes: number;
  readonly cpuUs: number;
}

async function usage(): Promise<Usage> {
  const { user, system } = process.cpuUsage();
  for (let round = 0; round < 3; round += 1) globalThis.gc?.();
  return { rssBytes: process.memoryUsage.rss(), cpuUs: user + system };
}
