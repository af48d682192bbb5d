// Package audit proves from the request log what a crawl did: for each host the smallest gap between two requests, the robots.txt that
// allowed each page, and everything that should not have happened. It trusts none of the verdicts in the log: each page is put
// to the robots package again, with the file that was in force. docs/AUDIT.md says what that proves and what it cannot.
package audit
