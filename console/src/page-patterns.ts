/** The addresses of pages, below /console. The first that matches an address is its page. */
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
