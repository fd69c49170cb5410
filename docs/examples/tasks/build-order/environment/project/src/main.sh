# needs: greet numbers
greet "version @VERSION@"
double 21
