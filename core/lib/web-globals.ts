/** Types of web globals that the types of the package name. */

// The package also exports types to type libraries without web globals (`lib` without `dom`, and no `@types/node`),
// where a plain `Request` does not compile.

/** `URL` of the URL standard, or the little of it that a type library without it can check. */
export type WebUrl = typeof globalThis extends { readonly URL: { readonly prototype: infer T } } ? T
  : { readonly href: string }

/** `AbortSignal` of the DOM standard, or the little of it that a type library without it can check. */
export type WebAbortSignal = typeof globalThis extends
  { readonly AbortSignal: { readonly prototype: infer T } } ? T : { readonly aborted: boolean }

/** `Response` of the Fetch standard; `unknown` under a type library without it. */
export type WebResponse = typeof globalThis extends { readonly Response: { readonly prototype: infer T } } ? T
  : unknown

/** `Request` of the Fetch standard; `unknown` under a type library without it. */
export type WebRequest = typeof globalThis extends { readonly Request: { readonly prototype: infer T } } ? T
  : unknown
