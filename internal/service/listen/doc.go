// Package listen has what the servers of this process share: a listener that holds a bounded number of
// connections, limits of what one client may do, certificates that are replaced while they are in
// use, and tokens.
package listen
