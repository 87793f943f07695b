/** Patterns of the addresses of pages, below /console. The first pattern that matches an address selects the page. */
export const pagePatterns = [
  "/",
  "/services",
  "/services/new",
  "/services/:id/:tab?",
  "/events",
  "/members",
  "/keys",
  "/audit",
  "/sessions",
  "/resources",
  "/resources/:operation",
  "/design",
] as const;

export type PagePattern = (typeof pagePatterns)[number];
