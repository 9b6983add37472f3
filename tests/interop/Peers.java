import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The makers of filters in Java, as a program: guava write LIST N P FILE, or
 * guava check FILE LIST, and the same with spark. By reflection, so that each
 * needs only its own jar.
 */
class Peers {
    public static void main(String[] args) throws Exception {
        boolean guava = args[0].equals("guava");
        Class<?> type = Class.forName(guava
                ? "com.google.common.hash.BloomFilter"
                : "org.apache.spark.util.sketch.BloomFilter");
        Object funnel = guava
                ? Class.forName("com.google.common.hash.Funnels")
                        .getMethod("stringFunnel", java.nio.charset.Charset.class)
                        .invoke(null, StandardCharsets.UTF_8)
                : null;
        Class<?> funnelType = guava ? Class.forName("com.google.common.hash.Funnel") : null;
        Method ask = guava
                ? type.getMethod("mightContain", Object.class)
                : type.getMethod("mightContainString", String.class);
        Method put = guava
                ? type.getMethod("put", Object.class)
                : type.getMethod("putString", String.class);
        if (args[1].equals("check")) {
            Object filter;
            try (InputStream in = new FileInputStream(args[2])) {
                filter = guava
                        ? type.getMethod("readFrom", InputStream.class, funnelType).invoke(null, in, funnel)
                        : type.getMethod("readFrom", InputStream.class).invoke(null, in);
            }
            for (String line : Files.readAllLines(Path.of(args[3]))) {
                if ((Boolean) ask.invoke(filter, line)) {
                    System.out.println(line);
                }
            }
            return;
        }
        long n = Long.parseLong(args[3]);
        double p = Double.parseDouble(args[4]);
        Object filter = guava
                ? type.getMethod("create", funnelType, long.class, double.class).invoke(null, funnel, n, p)
                : type.getMethod("create", long.class, double.class).invoke(null, n, p);
        for (String line : Files.readAllLines(Path.of(args[2]))) {
            put.invoke(filter, line);
        }
        try (OutputStream out = new FileOutputStream(args[5])) {
            type.getMethod("writeTo", OutputStream.class).invoke(filter, out);
        }
    }
}
