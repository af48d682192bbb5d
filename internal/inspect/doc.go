// Package inspect says what is known of hosts and URLs, as the commands print it and the API sends it. It reads the store in short
// transactions and holds no more than what it was asked for, so that it may look into a frontier of any size while a crawl works on it.
// What it sees is of different moments.
//
// Its types are plain data that goes out as JSON; docs/OUTPUT.md describes the line of a URL.
package inspect
